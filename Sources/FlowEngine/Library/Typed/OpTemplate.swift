/// A Sendable form of an op, which any thread may use, such as in a global constant: makes a new op for each
/// flow and run.
///
/// ```swift
/// let GreetOp = OpTemplate("GreetOp", needs: ["name": "string"]) { context in
///   context.log("Hello, \(try context.value("name", as: String.self))!")
/// }
/// let greetAll = OpTemplate {
///   Flow("greetAll").addGrouped(GreetOp, GroupDispatcher(input: "names"))
/// }
/// ```
///
/// An `Op` itself is confined to its thread. Values of typed ops are Sendable when their properties are, and
/// need no template.
public struct OpTemplate: OpConvertible, Sendable {
  private let make: @Sendable () -> Op

  /// Makes a template of any op, flow or machine.
  ///
  /// - Parameter make: Makes the op; called for each flow and run, on their thread.
  public init(_ make: @escaping @Sendable () -> any OpConvertible) {
    self.make = { make().makeOp() }
  }

  /// Makes a template of an op that is a closure; see `Op.init` for the parameters.
  public init(
    _ name: String, doc: String? = nil, needs: KeyValuePairs<String, String> = [:],
    gives: KeyValuePairs<String, String> = [:], primaryInput: String? = nil,
    primaryOutput: String? = nil, retry: RetryPolicy? = nil, timeout: Duration? = nil,
    grace: Duration? = nil, file: StaticString = #fileID, line: UInt = #line,
    body: @escaping @Sendable (OpContext) throws -> Void
  ) {
    self.init {
      Op(
        name, doc: doc, needs: needs, gives: gives, primaryInput: primaryInput,
        primaryOutput: primaryOutput, retry: retry, timeout: timeout, grace: grace, file: file,
        line: line, body: body)
    }
  }

  /// Makes a template of an op that is an `async` closure; see `Op.init` for the parameters, and for how such
  /// bodies run.
  public init(
    _ name: String, doc: String? = nil, needs: KeyValuePairs<String, String> = [:],
    gives: KeyValuePairs<String, String> = [:], primaryInput: String? = nil,
    primaryOutput: String? = nil, retry: RetryPolicy? = nil, timeout: Duration? = nil,
    grace: Duration? = nil, file: StaticString = #fileID, line: UInt = #line,
    body: nonisolated(nonsending) @escaping @Sendable (OpContext) async throws -> Void
  ) {
    self.init {
      Op(
        name, doc: doc, needs: needs, gives: gives, primaryInput: primaryInput,
        primaryOutput: primaryOutput, retry: retry, timeout: timeout, grace: grace, file: file,
        line: line, body: body)
    }
  }

  public func makeOp() -> Op { make() }
}
