import FlowEngine
import Testing

@testable import FlowHTTP

@Suite("Ranges of responses")
struct ContentRangeTests {
  @Test("The first byte, the end and the size are read")
  func forms() {
    let range = ContentRange("bytes 100-149/200")
    #expect(range?.start == 100)
    #expect(range?.end == 150)
    #expect(range?.total == 200)
    let open = ContentRange("Bytes 0-0/*")
    #expect(open?.start == 0)
    #expect(open?.end == 1)
    #expect(open != nil && open?.total == nil)
  }

  @Test("Nonsense and impossible ranges are none")
  func nonsense() {
    let texts = [
      "", "bytes", "bytes */200", "items 0-1/2", "bytes 1-0/2", "bytes 0-2/2", "bytes 0-1",
      "bytes 0-1/", "bytes 0-1/2/3", "bytes -1-1/2", "bytes 0-1-2/3", "bytes a-b/c",
      "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775808/*", "bytes=0-1/2",
    ]
    for text in texts { #expect(ContentRange(ByteString(text)) == nil, "\(text)") }
  }
}
