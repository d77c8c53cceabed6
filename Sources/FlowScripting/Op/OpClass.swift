public import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A class of ops, written in Swift. A script makes an op by calling it: `PrintOp("hello")`.
///
/// ```swift
/// host.register(
///   OpClass("GreetOp") { arguments in
///     let name = try arguments.string(1)
///     return Op("GreetOp") { context in context.log("Hello, \(name)!") }
///   })
/// ```
public final class OpClass {
  /// Its name in `flow.ops`.
  public var name: String { nameBytes.description }
  /// The bytes of `name`.
  package let nameBytes: ByteString
  /// The value of `op.doc`.
  public var doc: String? { docBytes?.description }
  /// The bytes of `doc`.
  package let docBytes: ByteString?
  let make: (OpArguments) throws -> Op
  /// Whether its ops' bodies know the form of their code, arguments included.
  var knowsCodeForm = false

  /// A class of ops.
  ///
  /// - Parameters:
  ///   - name: Its name in `flow.ops` and in messages about its arguments.
  ///   - doc: The value of `op.doc`.
  ///   - make: Makes an op, or a typed op, from the arguments of a call, which are valid until it
  ///     returns. An error that it throws is raised in the script; an error of `OpArguments` is an
  ///     error of use with the script's line.
  public init(
    _ name: String, doc: String? = nil,
    make: @escaping (OpArguments) throws -> any OpConvertible
  ) {
    self.nameBytes = ByteString(name)
    self.docBytes = doc.map { ByteString($0) }
    self.make = { try make($0).makeOp() }
  }

  /// The class for scripts: an op whose arguments haven't been given yet.
  func asOp() -> Op { Op(nameBytes: nameBytes, doc: docBytes, body: OpClassBody(self)) }
}

extension Op {
  /// The reason why an op can't be used if it is still a class, or wraps one; nil for any other.
  var complaintOfClass: String? {
    var op: Op? = self
    // A loop: a script may wrap an op 100,000 times.
    while let body = op?.body {
      if let body = body as? OpClassBody { return body.complaint }
      op = body.inner
    }
    return nil
  }
}

/// The body of an op class that wasn't called. A script gets an error where it uses the class; a
/// Swift program that starts one gets the error from the run.
final class OpClassBody: OpBody {
  private let opClass: OpClass

  init(_ opClass: OpClass) {
    self.opClass = opClass
  }

  /// The message about using the class itself.
  var complaint: String {
    "op '\(opClass.nameBytes)' needs its arguments: call it first, as in \(opClass.nameBytes)(…)"
  }

  func start(_ context: OpContext) -> CallState {
    context.fail(.usage(ByteString(complaint)))
    return .finished
  }

  /// The op made by a call.
  func op(_ host: ScriptHost, _ call: LuaCall) throws -> Op {
    let arguments = Arguments(host, call, method: opClass.nameBytes.description)
    do {
      let op = try opClass.make(OpArguments(arguments))
      if !opClass.knowsCodeForm { op.madeBy = try OpClassCall(host, opClass.nameBytes, call) }
      return op
    } catch let error as FlowError {
      throw error.kind == .usage
        ? host.usage(call, error.messageBytes.description) : host.raise(error)
    }
  }
}
