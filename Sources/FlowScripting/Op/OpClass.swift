public import FlowEngine
internal import LuaVM

/// A kind of op, written in Swift, that scripts make ops of by calling it: `PrintOp("hello")`.
///
/// ```swift
/// host.register(
///   OpClass("GreetOp") { arguments in
///     let name = try arguments.string(1)
///     return Op("GreetOp") { context in context.log("Hello, \(name)!") }
///   })
/// ```
public final class OpClass {
  /// What scripts find it by, in `flow.ops`.
  public let name: ByteString
  /// What `op.doc` gives.
  public let doc: ByteString?
  let make: (OpArguments) throws -> Op

  /// A class of ops.
  ///
  /// - Parameters:
  ///   - name: What scripts find it by; messages about its arguments name it.
  ///   - doc: What `op.doc` gives.
  ///   - make: Makes an op, or a typed op, of a call's arguments, which are valid until it returns. What
  ///     it throws is raised in the script; what `OpArguments` throws is an error of use with the
  ///     script's line.
  public init(
    _ name: ByteString, doc: ByteString? = nil,
    make: @escaping (OpArguments) throws -> any OpConvertible
  ) {
    self.name = name
    self.doc = doc
    self.make = { try make($0).makeOp() }
  }

  /// The class as scripts hold it: an op that has yet to get its arguments.
  func asOp() -> Op { Op(name: name, doc: doc, body: OpClassBody(self)) }
}

extension Op {
  /// Why an op can't be used that is still a class, or wraps one; nil for any other.
  var complaintOfClass: String? {
    if let body = body as? OpClassBody { return body.complaint }
    return body?.inner?.complaintOfClass
  }
}

/// The body of an op class that wasn't called. Scripts are told so where they use it; a Swift program
/// that starts one learns it from the run.
final class OpClassBody: OpBody {
  private let opClass: OpClass

  init(_ opClass: OpClass) {
    self.opClass = opClass
  }

  /// What is wrong with using the class itself.
  var complaint: String {
    "op '\(opClass.name)' needs its arguments: call it first, as in \(opClass.name)(…)"
  }

  func start(_ context: OpContext) -> OpProgress {
    context.fail(.usage(ByteString(complaint)))
    return .finished
  }

  /// The op that a call asks for.
  func op(_ host: ScriptHost, _ call: LuaCall) throws -> Op {
    let arguments = Arguments(host, call, method: opClass.name.description)
    do {
      return try opClass.make(OpArguments(arguments))
    } catch let error as FlowError {
      throw error.kind == .usage
        ? host.usage(call, error.message.description) : host.raise(error)
    }
  }
}
