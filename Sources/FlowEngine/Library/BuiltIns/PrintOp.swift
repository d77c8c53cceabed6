/// Adds a message to the log.
public final class PrintOp: Op {
  /// Makes an op that logs one message.
  ///
  /// - Parameter message: The text that the log shows after the op's name.
  public init(_ message: ByteString) {
    super.init(name: "PrintOp", body: ClosureBody { context in context.log(message) })
  }
}
