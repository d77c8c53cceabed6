/// Adds a message to the log.
public final class PrintOp: Op {
  /// An op that logs one message.
  ///
  /// - Parameter message: What the log shows behind the op's name.
  public init(_ message: ByteString) {
    super.init(name: "PrintOp", body: ClosureBody { context in context.log(message) })
  }
}
