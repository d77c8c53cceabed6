internal import FlowEngine
internal import Glibc

/// The variables of the environment that name proxies, as they were at the first request of a loop.
struct HTTPEnvironment {
  /// Whether there is any.
  let namesProxies: Bool
  /// The proxy of `HTTP_PROXY`, unless `http_proxy` is there, or a CGI program runs.
  let proxy: ByteString?

  init() {
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    let proxy = Self.value("HTTP_PROXY")
    namesProxies = proxy != nil || names.contains { Self.value($0) != nil }
    self.proxy =
      Self.value("http_proxy") == nil && Self.value("REQUEST_METHOD") == nil ? proxy : nil
  }

  /// The value of a variable; nil if it has none, or an empty one.
  static func value(_ name: String) -> ByteString? {
    guard let value = getenv(name) else { return nil }
    let text = ByteString(cString: value)
    return text.isEmpty ? nil : text
  }
}
