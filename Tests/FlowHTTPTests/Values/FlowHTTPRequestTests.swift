import FlowEngine
import Testing

@testable import FlowHTTP

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

@Suite("Mistakes in requests")
struct HTTPRequestTests {
  @Test(
    "Limits of time are longer than 0", arguments: [.zero, .seconds(-1)] as [Duration])
  func time(_ wrong: Duration) {
    var request = FlowHTTPRequest("http://a.example/")
    #expect(request.misuse == nil)
    request.timeout = wrong
    #expect(request.misuse?.field == "timeout")
    request.timeout = nil
    request.connectTimeout = wrong
    #expect(request.misuse?.field == "connect_timeout")
    request.connectTimeout = .seconds(1)
    request.idleTimeout = wrong
    #expect(request.misuse?.field == "idle_timeout")
  }

  @Test("Names, types and file names of parts are lines without NUL bytes")
  func parts() {
    func field(_ part: HTTPPart) -> ByteString? {
      var request = FlowHTTPRequest("http://a.example/")
      request.body = .parts([part])
      return request.misuse?.field
    }
    #expect(field(HTTPPart("a", .bytes("b"))) == nil)
    #expect(field(HTTPPart("a\0", .bytes("b"))) == "form")
    #expect(field(HTTPPart("a\0", .file("b"))) == "files")
    #expect(field(HTTPPart("a", .file("b\0"))) == "files")
    #expect(field(HTTPPart("a", .bytes("b"), type: "a/b\r\nX: 1")) == "files")
    #expect(field(HTTPPart("a", .bytes("b"), fileName: "c\n")) == "files")
  }

  @Test("A client knows the URLs of its server")
  func origins() {
    let secrets = SecretTexts()
    let holds = SecretHolds(secrets, countedIn: nil)
    defer { withExtendedLifetime(holds) {} }
    holds.add(.bytes("hush-hush"))
    let client = FlowHTTPClient(
      base: "https://a.example/v1",
      headers: [
        HTTPHeader("Cookie", "a=b"), HTTPHeader("X-A", "1"), HTTPHeader("X-B", "Bearer hush-hush"),
      ])
    func names(_ url: ByteString) -> [ByteString] {
      client.completing(FlowHTTPRequest(url), hiding: secrets).headers.map(\.name)
    }
    #expect(names("items") == ["Cookie", "X-A", "X-B"])
    #expect(names("https://a.example/other") == ["Cookie", "X-A", "X-B"])
    for url in ["http://a.example/", "https://b.example/", "https://a.example:444/"] {
      #expect(names(ByteString(url)) == ["X-A"])
    }
  }

  @Test("A request is sent with what its client adds to it")
  func sending() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    let server = Echo()
    loop.httpReplacement = server
    let client = FlowHTTPClient(
      base: "https://a.example/v1", headers: [HTTPHeader("X-A", "1")],
      authorization: .bearer("token"))
    let task = try FlowHTTPRequest("items").start(on: loop, client: client)
    loop.runUntilIdle()
    #expect(task.result?.text == "GET https://a.example/v1/items")
    #expect(server.names.map(\.lowercased).sorted() == ["authorization", "x-a"])
    loop.shutdown()
  }
}

/// Responds with the method and the URL of each request.
private final class Echo: HTTPReplacement {
  private(set) var names: [ByteString] = []

  func problem(with method: ByteString, _ url: ByteString) -> ByteString? { nil }

  func start(_ request: ReplacedRequest) {
    names = request.headers.map(\.name)
    request.respond(status: 200, headers: [], body: "\(request.method) \(request.url)")
  }

  func cancel(_ request: ReplacedRequest, _ error: FlowError) {}
}
