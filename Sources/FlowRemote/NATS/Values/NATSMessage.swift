package import FlowEngine

/// A line of a message's header.
package struct NATSHeader: Equatable, Sendable {
  package let name: ByteString
  package let value: ByteString

  package init(_ name: ByteString, _ value: ByteString) {
    self.name = name
    self.value = value
  }
}

/// A message that has come from a server.
package struct NATSMessage: Sendable {
  package let subject: ByteString
  /// The subject for replies; nil if none is expected.
  package let reply: ByteString?
  package let data: ByteString
  /// The server's own word about a request; nil for any other message.
  package let status: Status?

  package struct Status: Sendable {
    /// Such as 503.
    let code: Int
    let text: ByteString
    /// How many messages the request lacks.
    let pending: Int?
  }
}

extension NATSHeader {
  /// Reads the lines of a header as the server stores it: a version, then a line for each entry.
  static func list(ofBlock bytes: [UInt8]) -> [NATSHeader] {
    bytes.split(separator: 0x0A).dropFirst().compactMap { line in
      let line = line.last == 0x0D ? line.dropLast() : line
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let value = line[(colon + 1)...].drop { $0 == 0x20 }
      return NATSHeader(ByteString(line[..<colon]), ByteString(value))
    }
  }

  /// Whether the name and value can be sent.
  var isValid: Bool {
    let isNamed =
      !name.isEmpty && name.bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
    return isNamed && value.bytes.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }
  }
}

extension ByteString {
  /// Copies a C string; empty for no pointer.
  init(cText: UnsafePointer<CChar>?) {
    guard let cText else {
      self.init([])
      return
    }
    self.init(cString: cText)
  }

  /// Whether the text is a subject: tokens that aren't empty, separated by dots, without spaces and control
  /// characters.
  var isNATSSubject: Bool {
    let dot = UInt8(ascii: ".")
    var last = dot
    for byte in bytes {
      guard byte > 0x20, byte != 0x7F, byte != dot || last != dot else { return false }
      last = byte
    }
    return last != dot
  }

  /// Whether the text is the name of a stream or consumer: one token of a subject, without wildcards and slashes.
  var isNATSName: Bool {
    !isEmpty && count <= 255
      && bytes.allSatisfy {
        $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "*")
          && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\")
      }
  }
}

extension ByteString {
  /// The text with the bytes that a mark and two hexadecimal digits stand for; nil for a wrong form.
  package init?(_ text: ArraySlice<UInt8>, decoding mark: Unicode.Scalar) {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: mark) else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2).compactMap(\.hexadecimalDigit)
      guard digits.count == 2 else { return nil }
      bytes.append(digits[0] << 4 | digits[1])
      rest = rest.dropFirst(2)
    }
    self.init(bytes)
  }

  /// A random text that nobody else has: 32 hexadecimal digits.
  package static var unique: ByteString {
    "\(UInt64.random(in: 0 ... .max).hexadecimal)\(UInt64.random(in: 0 ... .max).hexadecimal)"
  }
}

/// Base64 in its two alphabets.
enum NATSBase64 {
  private static let common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  private static let plain = (common + "+/").bytes
  private static let url = (common + "-_").bytes

  /// Encodes bytes in the alphabet for URLs, with padding.
  static func encodeForURL(_ bytes: [UInt8]) -> ByteString {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let part = bytes[start..<min(start + 3, bytes.count)]
      let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
      for place in 0..<4 {
        text.append(place > part.count ? UInt8(ascii: "=") : url[bits >> (18 - 6 * place) & 63])
      }
    }
    return ByteString(text)
  }

  /// The numbers of the letters of the usual alphabet; 64 for other bytes.
  private static let values = (0...255).map { byte in plain.firstIndex(of: UInt8(byte)) ?? 64 }

  /// Decodes a text in the usual alphabet, with or without padding; nil for any other text.
  static func decode(_ text: ByteString) -> [UInt8]? {
    let letters = text.bytes.prefix { $0 != UInt8(ascii: "=") }
    let padding = text.bytes[letters.endIndex...]
    guard letters.count % 4 != 1, padding.count <= 2,
      padding.allSatisfy({ $0 == UInt8(ascii: "=") })
    else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(letters.count / 4 * 3 + 3)
    var (buffer, bits) = (0, 0)
    for letter in letters {
      guard values[Int(letter)] < 64 else { return nil }
      buffer = (buffer << 6 | values[Int(letter)]) & 0xFFFF
      bits += 6
      if bits < 8 { continue }
      bits -= 8
      bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
    }
    return bytes
  }
}
