/// Recognizes the longest beginning of a text that may become a number, byte by byte, as `io.read "n"`
/// does.
package struct NumeralScanner {
  private enum Part {
    case sign, zero, hexMark, digits, fraction, exponentSign, exponent
  }

  /// The bytes so far.
  package private(set) var text: [UInt8] = []

  package init() {}
  private var part = Part.sign
  private var isHex = false
  private var hasDigits = false
  private var hasExponentDigits = false
  /// The length at which `io.read` gives up.
  private static let limit = 200

  private var isTooLong = false

  /// Whether the text is a number.
  package var isNumber: Bool {
    if isTooLong { return false }
    switch part {
    case .sign, .zero, .exponentSign: return false
    case .hexMark: return true
    case .digits, .fraction: return hasDigits
    case .exponent: return hasExponentDigits
    }
  }

  /// Adds a byte if the text may continue with it; returns whether it did.
  package mutating func add(_ byte: UInt8) -> Bool {
    guard continues(with: byte) else { return false }
    if text.count == Self.limit {
      isTooLong = true
      return false
    }
    text.append(byte)
    return true
  }

  private mutating func continues(with byte: UInt8) -> Bool {
    let isSign = byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
    switch part {
    case .sign:
      part = .zero
      return isSign || continues(with: byte)
    case .zero:
      let isZero = byte == UInt8(ascii: "0")
      part = isZero ? .hexMark : .digits
      return isZero || continues(with: byte)
    case .hexMark:
      isHex = byte | 32 == UInt8(ascii: "x")
      hasDigits = !isHex
      part = .digits
      return isHex || continues(with: byte)
    case .digits where byte == UInt8(ascii: "."):
      part = .fraction
      return true
    case .digits, .fraction:
      if isDigit(byte, hex: isHex) {
        hasDigits = true
        return true
      }
      guard hasDigits, byte | 32 == UInt8(ascii: isHex ? "p" : "e") else { return false }
      part = .exponentSign
      return true
    case .exponentSign:
      part = .exponent
      return isSign || continues(with: byte)
    case .exponent:
      guard isDigit(byte, hex: false) else { return false }
      hasExponentDigits = true
      return true
    }
  }

  private func isDigit(_ byte: UInt8, hex: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): hex
    default: false
    }
  }
}
