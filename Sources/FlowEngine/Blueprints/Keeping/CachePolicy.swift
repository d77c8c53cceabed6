/// Which results of an op kept runs may take from any other run of their store.
public struct CachePolicy: Sendable, Equatable {
  /// Seconds after which a result isn't used any more; nil for no limit.
  public var expires: Double?
  /// Results of another version aren't used.
  public var version: ByteString

  /// A policy; by default results never expire.
  public init(expires: Double? = nil, version: ByteString = "") {
    self.expires = expires
    self.version = version
  }
}
