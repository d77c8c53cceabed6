import FlowEngine
import Testing

@Suite("Numbers of bytes")
struct ByteCountTests {
  @Test(
    "A whole number with a unit is read",
    arguments: [
      ("64K", 64 << 10), ("512M", 512 << 20), ("1G", 1 << 30), ("2T", 2 << 40), ("0M", 0),
      ("007K", 7 << 10),
    ])
  func parsing(_ text: String, _ bytes: Int) {
    #expect(ByteCount(parsing: ByteString(text))?.bytes == bytes)
  }

  @Test(
    "Another text is none",
    arguments: [
      "", "M", "64", "64m", "64MB", "-1M", "+1M", " 1M", "1.5M", "1e3M", "0x1M", "9999999999999T",
      "99999999999999999999K",
    ])
  func wrong(_ text: String) {
    #expect(ByteCount(parsing: ByteString(text)) == nil)
  }

  @Test(
    "The text stands for the exact number",
    arguments: [
      (64 << 10, "64K"), (1536 << 10, "1536K"), (3 << 20, "3M"), (5 << 30, "5G"), (1 << 40, "1T"),
      (65537, "65537 bytes"), (1, "1 byte"), (0, "0 bytes"),
    ])
  func text(_ bytes: Int, _ text: String) {
    #expect(ByteCount(bytes).text.description == text)
  }
}
