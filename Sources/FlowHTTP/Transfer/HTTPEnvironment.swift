internal import FlowEngine
internal import FlowSystem

/// The variables of the environment that name proxies, as they were at the first request of a loop.
struct HTTPEnvironment {
  /// Whether there is any.
  let namesProxies: Bool
  /// The proxy of `HTTP_PROXY`, unless `http_proxy` is there, or a CGI program runs.
  let proxy: ByteString?

  init() {
    let names: [String] = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    let proxy = environment("HTTP_PROXY")
    namesProxies = proxy != nil || names.contains { environment($0) != nil }
    self.proxy =
      environment("http_proxy") == nil && environment("REQUEST_METHOD") == nil ? proxy : nil
  }
}
