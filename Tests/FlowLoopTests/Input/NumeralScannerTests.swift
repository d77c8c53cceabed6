import FlowLoop
import Testing

@Suite("Numerals of the standard input")
struct NumeralScannerTests {
  /// The part of a text that the scanner takes; nil if that is no number.
  private func number(_ text: String) -> String? {
    var scanner = NumeralScanner()
    for byte in text.utf8 where !scanner.add(byte) { break }
    return scanner.isNumber ? String(decoding: scanner.text, as: UTF8.self) : nil
  }

  @Test(
    "The longest beginning that is a number is taken",
    arguments: [
      ("0", "0"), ("12x", "12"), ("-3-", "-3"), ("+4 5", "+4"), ("0x1Fg", "0x1F"), ("1.5.5", "1.5"),
      (".5", ".5"), ("5.", "5."), ("1e3e", "1e3"), ("0x.8p-1p", "0x.8p-1"), ("007", "007"),
    ])
  func longestBeginning(text: String, expected: String) {
    #expect(number(text) == expected)
  }

  @Test(
    "A beginning without digits is no number",
    arguments: ["", "-", "+x", ".", "0x", "0x.p1", "1e", "1e+", "e5", "nan", "--1"])
  func noNumber(text: String) {
    #expect(number(text) == nil)
  }

  @Test("More than 200 bytes are no number")
  func limit() {
    #expect(number(String(repeating: "1", count: 200))?.count == 200)
    #expect(number(String(repeating: "1", count: 201)) == nil)
  }
}
