import FlowEngine
import Testing

@Suite("Searching bytes")
struct ByteSearchTests {
  @Test(
    "The first place of a text is found, also after one that only begins like it",
    arguments: [
      ("", "", 0), ("a", "", 0), ("", "a", nil), ("abc", "abc", 0), ("abc", "abcd", nil),
      ("xabc", "abc", 1), ("aab", "ab", 1), ("ababac", "abac", 2), ("a://b://c", "://", 1),
      ("abab", "b", 1), ("ab", "c", nil), ("äö", "ö", 2),
    ] as [(ByteString, ByteString, Int?)])
  func place(text: ByteString, wanted: ByteString, expected: Int?) {
    #expect(text.bytes.place(of: wanted) == expected.map { $0..<$0 + wanted.count })
    #expect(text.contains(wanted) == (expected != nil))
  }

  @Test("Places in a part of bytes are those of the whole")
  func parts() {
    let bytes: ByteString = "//a//b"
    #expect(bytes.bytes[1...].place(of: "//") == 3..<5)
    #expect(bytes.bytes[4...].place(of: "//") == nil)
    #expect(bytes.bytes[6...].place(of: "") == 6..<6)
  }

  @Test("Bytes that aren't in one piece are searched, too")
  func pieces() {
    #expect([UInt8]("xabc".utf8).reversed().reversed().place(of: "bc") == 2..<4)
    #expect(repeatElement(UInt8(ascii: "a"), count: 3).place(of: "aa") == 0..<2)
  }
}
