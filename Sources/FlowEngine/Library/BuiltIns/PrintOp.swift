/// Adds a message to the log.
///
/// ```swift
/// Flow("hello").add(PrintOp("Hello")).start(on: loop)
/// ```
public final class PrintOp: Op {
  /// The description of such ops, for people.
  package static let docText = "Logs its message."

  /// Makes an op that logs one message.
  ///
  /// - Parameter message: The text that the log shows after the op's name.
  public init(_ message: some FlowText) {
    super.init(name: "PrintOp", doc: Self.docText, body: PrintBody(message.byteString))
  }
}

private final class PrintBody: OpBody {
  private let message: ByteString

  init(_ message: ByteString) {
    self.message = message
  }

  func start(_ context: OpContext) -> CallState {
    context.log(message)
    return .finished
  }

  func codeForm() -> CodeForm? {
    var writer = CodeFormWriter("PrintOp")
    writer.add(message)
    return writer.form()
  }
}
