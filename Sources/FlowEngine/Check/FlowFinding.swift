/// Something that `Flow.check` has found.
public struct FlowFinding: Sendable, Hashable {
  /// How bad a finding is.
  public enum Severity: Sendable {
    /// What is found ends a run when it comes there, on some path at least.
    case error
    /// It may go well: what is given depends on the way through the flow.
    case warning

    /// The name that scripts use.
    public var name: ByteString {
      switch self {
      case .error: "error"
      case .warning: "warning"
      }
    }
  }

  /// How bad it is.
  public let severity: Severity
  /// The name of the op or flow that it is about; `Cases` for a case.
  public let op: ByteString
  /// A sentence without a full stop that names keys, types and ops.
  public let message: ByteString

  /// A finding about `op`.
  public init(_ severity: Severity, op: ByteString, _ message: ByteString) {
    self.severity = severity
    self.op = op
    self.message = message
  }
}
