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

  @Test("A query is added to the one that the URL has, and before a fragment")
  func query() {
    var request = HTTPRequest("http://a/b?x=1#f")
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
