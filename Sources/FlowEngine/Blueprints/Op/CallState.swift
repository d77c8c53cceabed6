/// The state of a body or callback after it was called.
public enum CallState: Sendable {
  /// It is done.
  case finished
  /// It waits, and later reports that it is done.
  case suspended
}
