/// How long the stages of the last request took, in seconds; 0 for a stage that a kept connection
/// saved.
public struct HTTPTimings: Sendable {
  /// Looking up the name.
  public var resolve = 0.0
  /// Connecting.
  public var connect = 0.0
  /// Agreeing on the encryption.
  public var tls = 0.0
  /// Sending, and waiting for the first byte.
  public var wait = 0.0
  /// Receiving the rest.
  public var receive = 0.0
}
