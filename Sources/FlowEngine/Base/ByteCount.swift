/// A number of bytes, as users write it: `64M`, `512K`, `1G`.
package struct ByteCount: Comparable, Sendable {
  /// The units by their letters, the largest first.
  private static let units: [(letter: UInt8, factor: Int)] = [
    (UInt8(ascii: "T"), 1 << 40), (UInt8(ascii: "G"), 1 << 30), (UInt8(ascii: "M"), 1 << 20),
    (UInt8(ascii: "K"), 1 << 10),
  ]

  package let bytes: Int

  package init(_ bytes: Int) {
    self.bytes = bytes
  }

  /// Reads a whole number with the unit K, M, G or T; nil for another text, and for a number that is too
  /// large.
  package init?(parsing text: ByteString) {
    let digits = text.bytes.dropLast()
    guard !digits.isEmpty, let last = text.bytes.last,
      digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let number = Int(String(decoding: digits, as: UTF8.self)),
      let unit = Self.units.first(where: { $0.letter == last })
    else { return nil }
    let (product, overflows) = number.multipliedReportingOverflow(by: unit.factor)
    if overflows { return nil }
    bytes = product
  }

  /// The text that stands for exactly this number: `64M`, or `65537 bytes`.
  package var text: ByteString {
    guard bytes > 0, let unit = Self.units.first(where: { bytes % $0.factor == 0 }) else {
      return bytes == 1 ? "1 byte" : "\(bytes) bytes"
    }
    return "\(bytes / unit.factor)\(ByteString([unit.letter]))"
  }

  package static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}
