import FlowEngine
import Testing

@testable import FlowHTTP

@Suite("Server-sent events")
struct ServerSentEventsTests {
  @Test("Events are the same however the bytes and line ends come")
  func splits() {
    let text =
      ": hi\n\nevent: a\ndata: 1\ndata:2\nid: 7\n\nretry: 5\ndata\n\nevent: lost\n\ndata: cut"
    for end in ["\n", "\r\n", "\r"] {
      let bytes = Array(
        text.split(separator: "\n", omittingEmptySubsequences: false)
          .joined(separator: end).utf8)
      for size in [1, 2, 3, bytes.count] {
        var parser = ServerSentEvents()
        var events: [ServerSentEvent] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
          let part = bytes[start..<min(start + size, bytes.count)]
          events += parser.add(ByteString(Array(part)))
        }
        #expect(
          events == [
            ServerSentEvent(name: "a", data: "1\n2", id: "7", retry: nil),
            ServerSentEvent(name: "message", data: "", id: "7", retry: 5),
          ])
      }
    }
  }
}
