/// How long the stages of the last request took, in seconds; 0 for a stage that a kept connection
/// saved.
package struct HTTPTimings: Sendable {
  /// Looking up the name.
  package var resolve = Duration.zero
  /// Connecting.
  package var connect = Duration.zero
  /// Agreeing on the encryption.
  package var tls = Duration.zero
  /// Sending, and waiting for the first byte.
  package var wait = Duration.zero
  /// Receiving the rest.
  package var receive = Duration.zero
}
