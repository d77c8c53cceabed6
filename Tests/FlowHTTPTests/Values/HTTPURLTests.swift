import CCurl
import FlowEngine
import Testing

@testable import FlowHTTP

@Suite("URLs of requests")
struct HTTPURLTests {
  @Test("Messages show neither users, passwords, values of the query nor fragments")
  func shown() {
    let mark = "<redacted>"
    for (url, expected) in [
      ("http://a/b", "http://a/b"),
      ("http://u:p@a/b?x=1&y=2#z", "http://\(mark)@a/b?x=\(mark)&y=\(mark)"),
      ("http://a@b@c/", "http://\(mark)@c/"),
      ("http://a?token", "http://a?\(mark)"),
      ("http://a/p@q?x=u@v", "http://a/p@q?x=\(mark)"),
    ] {
      #expect(HTTPURL.shown(ByteString(url)) == ByteString(expected))
    }
  }

  @Test("URLs that are read without libcurl are those that it would read in the same way")
  func plain() throws {
    #expect(ccurl_load() == nil)
    let plain = [
      "http://a.example/", "https://a-1.example:8443/b/c.d?x=1&y=a+b;c,d:e~_-",
      "http://127.0.0.1:80/",
      "http://localhost/B//c?/x?y", "http://1a.b/", "https://xn--bcher-kva.example/x",
    ]
    for text in plain { #expect(HTTPURL(plain: ByteString(text)) != nil, "\(text)") }
    let others = [
      "http://a.example", "HTTP://a/", "http://A/", "http://127.1/", "http://0x7f.0.0.1/",
      "http://127.0.0.01/", "http://2130706433/", "http://256.0.0.1/", "http://a@b/",
      "http://a:b@c/",
      "http://a/b#c", "http://a/../b", "http://a/./b", "http://a/b c", "http://a/%41", "http://a:/",
      "http://a:0/", "http://a:65536/", "http://a:080/", "http://a:1:2/", "http:///a", "http://a./",
      "http://a..b/", "http://-a/", "http://[::1]/", "http://a_b/", "ftp://a/", "http://a/\u{11}",
      "http://a/ü", "http://a\\b/", "http://a?b", "http://a/b?", "//a/",
      "a",
    ]
    for text in others { #expect(HTTPURL(plain: ByteString(text)) == nil, "\(text)") }
    // And whatever else is taken.
    var random = SystemRandomNumberGenerator()
    let pieces = [
      "http://", "https://", "a", "b9", ".", "-", ":", "80", "/", "?", "=", "127", "0", "%", "@",
      "#",
    ]
    for _ in 0..<20_000 {
      let text =
        "http://" + (0..<8).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      try compare(text)
    }
    for text in plain { try compare(text) }
  }

  private func compare(_ text: String) throws {
    guard let url = HTTPURL(plain: ByteString(text)) else { return }
    let expected = try HTTPURL(parsing: ByteString(text), relativeTo: nil, encoding: false)
    #expect(url == expected, "\(text)")
  }

  @Test("A query is added to the one that the URL has, and before a fragment")
  func query() {
    var request = FlowHTTPRequest("http://a/b?x=1#f")
    request.query = [("y", "a b"), ("z", "&")]
    #expect(request.fullURL == "http://a/b?x=1&y=a%20b&z=%26")
    request.url = "http://a/b"
    #expect(request.fullURL == "http://a/b?y=a%20b&z=%26")
  }

  @Test("A template has each of its names once, and encodes the values")
  func template() throws {
    let template = try HTTPTemplate("http://a/{x}/{y}?z={x}")
    #expect(template.names == ["x", "y"])
    let url = try template.url { name throws(FlowError) in name == "x" ? "a/b" : "ü" }
    #expect(url == "http://a/a%2Fb/%C3%BC?z=a%2Fb")
    #expect(throws: HTTPMisuse.self) { try HTTPTemplate("http://a/{x") }
    #expect(throws: HTTPMisuse.self) { try HTTPTemplate("http://a/{}") }
  }
}
