/// How long the stages of the last request took, in seconds; 0 for a stage that a kept connection
/// saved.
///
/// ```swift
/// let response = try await HTTPTask(FlowHTTPRequest("https://shop.example"), on: loop).value
/// print("connected in \(response.timings.connect), waited \(response.timings.wait)")
/// ```
public struct HTTPTimings: Sendable {
  /// Looking up the name.
  public var resolve = Duration.zero
  /// Connecting.
  public var connect = Duration.zero
  /// Agreeing on the encryption.
  public var tls = Duration.zero
  /// Sending, and waiting for the first byte.
  public var wait = Duration.zero
  /// Receiving the rest.
  public var receive = Duration.zero
}
