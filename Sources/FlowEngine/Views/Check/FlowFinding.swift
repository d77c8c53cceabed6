/// A finding of `Flow.check`.
public struct FlowFinding: Sendable, Hashable {
  /// The severity of a finding.
  public enum Severity: Sendable {
    /// A run that reaches it fails, on some path at least.
    case error
    /// A run may succeed: the data depend on its path through the flow.
    case warning

    /// The name that scripts use.
    public var name: String { nameBytes.description }
    /// The bytes of `name`.
    package var nameBytes: ByteString {
      switch self {
      case .error: "error"
      case .warning: "warning"
      }
    }
  }

  /// The severity.
  public let severity: Severity
  /// The name of the op or flow of the finding; `Cases` for a case.
  public var op: String { opBytes.description }
  /// The bytes of `op`.
  package let opBytes: ByteString
  /// A sentence without a full stop that names keys, types and ops.
  public var message: String { messageBytes.description }
  /// The bytes of `message`.
  package let messageBytes: ByteString

  /// Makes a finding about `op`.
  package init(_ severity: Severity, op: ByteString, _ message: ByteString) {
    self.severity = severity
    self.opBytes = op
    self.messageBytes = message
  }
}
