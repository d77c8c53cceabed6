/// Which results of an op kept runs may take from any other run of their store.
///
/// ```swift
/// let cached = op.with(cache: CachePolicy(expires: .seconds(86_400), version: "2"))
/// ```
public struct CachePolicy: Sendable, Equatable {
  /// The age from which on a result isn't used any more; nil for no limit.
  package var expires: Duration?
  /// Results of another version aren't used.
  package var version: ByteString
  /// Computes a value that counts instead of what the op is given.
  package var key: (any CacheKeyRule)?

  /// A policy; by default results never expire.
  public init(expires: Duration? = nil, version: some FlowText = "" as ByteString) {
    self.expires = expires
    self.version = version.byteString
  }

  public static func == (left: CachePolicy, right: CachePolicy) -> Bool {
    left.expires == right.expires && left.version == right.version
      && left.key === right.key
  }
}

/// Computes the value that counts instead of what an op is given: a `CacheKeyFunction`.
package protocol CacheKeyRule: AnyObject, Sendable {}

extension CachePolicy {
  /// The key under which the body of a `CacheKeyRule` sets the value; `false` means that this execution has no cache.
  package static let keyName: ByteString = "\u{0}cache key"
}
