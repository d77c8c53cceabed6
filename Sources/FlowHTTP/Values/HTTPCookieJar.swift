internal import CCurl

/// Cookies that requests share: those of responses are kept for later requests. Confined to the
/// thread that made it.
///
/// ```swift
/// let shop = FlowHTTPClient(base: "https://shop.example", cookies: HTTPCookieJar())
/// ```
public final class HTTPCookieJar {
  /// Made for the first request: only that needs libcurl.
  private var made: OpaquePointer?

  /// Why this process has no cookies, as libcurl isn't there; nil when it is.
  package static var problem: String? { ccurl_load().map { String(cString: $0) } }

  /// Makes an empty jar.
  public init() {}

  deinit {
    if let made { ccurl_jar_free(UnsafeMutableRawPointer(made)) }
  }

  /// The jar of the library; nil without memory.
  var handle: UnsafeMutableRawPointer? {
    if made == nil { made = ccurl_jar_make().map { OpaquePointer($0) } }
    return made.map { UnsafeMutableRawPointer($0) }
  }
}
