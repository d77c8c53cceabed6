internal import FlowEngine

extension HTTPURL {
  /// Reads a URL of the form that most requests have: a name or an IPv4 address in lower case, perhaps a
  /// port, a path without dots at the start of its parts, and a query; nil for any other.
  ///
  /// libcurl reads such a URL in one way only, and doesn't change it. Its parser, which reads the URL once
  /// more for the request, took 8 % of a request's instructions here.
  init?(plain text: ByteString) {
    let isEncrypted = text.bytes.starts(with: Self.secureStart)
    guard isEncrypted || text.bytes.starts(with: Self.start) else { return nil }
    let isPlain = text.withUnsafeBytes { text in
      let (host, port, path) = Self.parts(text, isEncrypted)
      return Self.isPlain(host: host) && port.map(Self.isPlain(port:)) ?? true
        && Self.isPlain(path: path)
    }
    guard isPlain else { return nil }
    self.init(plain: text, isEncrypted: isEncrypted)
  }

  /// The host and the port of a plain URL; few requests need them.
  var plainOrigin: Origin {
    text.withUnsafeBytes { text in
      let (host, port, _) = Self.parts(text, isEncrypted)
      return Origin(
        host: ByteString(Array(host)),
        port: port.map { ByteString(Array($0)) } ?? (isEncrypted ? "443" : "80"))
    }
  }

  // Of memory that is lent: a slice of an array would be retained by each function that gets one.
  private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

  private static func parts(
    _ text: UnsafeBufferPointer<UInt8>, _ isEncrypted: Bool
  ) -> (host: Bytes, port: Bytes?, path: Bytes) {
    let rest = text.dropFirst(isEncrypted ? secureStart.count : start.count)
    let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    let authority = rest[..<slash]
    guard let colon = authority.firstIndex(of: UInt8(ascii: ":")) else {
      return (authority, nil, rest[slash...])
    }
    return (authority[..<colon], authority[(colon + 1)...], rest[slash...])
  }

  private static let start = Array("http://".utf8)
  private static let secureStart = Array("https://".utf8)

  /// Names whose last part begins with a letter, and IPv4 addresses: other numbers are addresses in forms
  /// that libcurl changes.
  private static func isPlain(host: Bytes) -> Bool {
    var labels = 0
    var start = host.startIndex
    while true {
      let label = host[start...].prefix { $0 != UInt8(ascii: ".") }
      labels += 1
      guard let first = label.first, isLetter(first) || isDigit(first),
        label.allSatisfy({ isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") })
      else { return false }
      if label.endIndex == host.endIndex { return !isDigit(first) || isAddress(host) }
      start = label.endIndex + 1
    }
  }

  /// `127.0.0.1`
  private static func isAddress(_ host: Bytes) -> Bool {
    var count = 0
    var rest = host
    while true {
      let number = rest.prefix { $0 != UInt8(ascii: ".") }
      guard isPlain(number: number, atMost: 255) else { return false }
      count += 1
      if number.endIndex == host.endIndex { return count == 4 }
      rest = rest[(number.endIndex + 1)...]
    }
  }

  private static func isPlain(port: Bytes) -> Bool {
    isPlain(number: port, atMost: 65535) && port.first != UInt8(ascii: "0")
  }

  /// A decimal number without zeros at its start.
  private static func isPlain(number: Bytes, atMost limit: Int) -> Bool {
    guard let first = number.first, number.count <= 5, number.allSatisfy(isDigit),
      number.count == 1 || first != UInt8(ascii: "0")
    else { return false }
    return number.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } <= limit
  }

  private static func isPlain(path: Bytes) -> Bool {
    // libcurl leaves out an empty query.
    guard let end = path.last, end != UInt8(ascii: "?") else { return false }
    var last = UInt8(ascii: "x")
    for byte in path {
      switch byte {
      case UInt8(ascii: "."):
        // libcurl leaves `/../` out of a path.
        if last == UInt8(ascii: "/") { return false }
      case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "="), UInt8(ascii: "&"),
        UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"),
        UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"):
        break
      default:
        guard isLetter(byte | 0x20) || isDigit(byte) else { return false }
      }
      last = byte
    }
    return true
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }
}
