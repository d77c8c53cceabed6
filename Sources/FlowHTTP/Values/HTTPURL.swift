internal import CCurl
package import FlowEngine
internal import FlowSystem

/// A mistake in a request: the name of a field, and what is wrong with it.
package struct HTTPMisuse: Error {
  /// The field of the request, by the name that scripts use.
  package let field: ByteString
  /// The mistake in it.
  package let problem: ByteString
}

/// A URL of a request, as libcurl reads it.
struct HTTPURL: Equatable {
  /// The server that a URL is of.
  struct Origin: Equatable {
    let host: ByteString
    let port: ByteString
  }

  /// The URL without user, password and fragment.
  let text: ByteString
  /// Whether the connection is encrypted.
  let isEncrypted: Bool
  let user: ByteString?
  let password: ByteString?
  /// The library's reading; nil for a plain URL, whose text says it.
  private let parsedOrigin: Origin?

  /// Reads a URL.
  ///
  /// - Parameters:
  ///   - text: The URL, which may be relative when there is a base.
  ///   - base: The URL that it is relative to.
  ///   - encodes: Whether bytes that a URL can't have are encoded instead of refused.
  /// - Throws: The mistake, of the field `url`.
  init(
    _ text: ByteString, relativeTo base: HTTPURL? = nil, encoding encodes: Bool = false
  ) throws(HTTPMisuse) {
    if base == nil, let url = HTTPURL(plain: text) {
      self = url
    } else {
      try self.init(parsing: text, relativeTo: base, encoding: encodes)
    }
  }

  /// As above, always by the library.
  init(
    parsing text: ByteString, relativeTo base: HTTPURL?, encoding encodes: Bool
  ) throws(HTTPMisuse) {
    var parts = ccurl_url()
    defer { ccurl_url_free(&parts) }
    let read: UnsafePointer<CChar>?? = text.withCString { text in
      guard let base else { return ccurl_url_read(nil, text, encodes, &parts) }
      return base.text.withCString { ccurl_url_read($0, text, encodes, &parts) } ?? nil
    }
    guard case .some(let problem) = read else {
      throw HTTPMisuse(
        field: "url", problem: "a NUL byte in '\(Self.shownUnread(text).escapingNUL)'")
    }
    if let problem {
      let shown = Self.shownUnread(text)
      let reason = ByteString(cString: problem)
      if !text.contains("://"), base == nil {
        throw HTTPMisuse(
          field: "url",
          problem: "a URL that begins with http:// or https:// expected, got '\(shown)'")
      }
      throw HTTPMisuse(field: "url", problem: "'\(shown)' is no URL: \(reason)")
    }
    guard let url = parts.url, let scheme = parts.scheme, let host = parts.host else {
      throw HTTPMisuse(field: "url", problem: "'\(Self.shownUnread(text))' is no URL")
    }
    self.text = ByteString(cString: url)
    let name = ByteString(cString: scheme)
    isEncrypted = name.equals("https")
    guard isEncrypted || name.equals("http") else {
      throw HTTPMisuse(
        field: "url", problem: "http:// or https:// expected, got the scheme '\(name)'")
    }
    parsedOrigin = Origin(
      host: ByteString(cString: host).lowercased,
      port: parts.port.map { ByteString(cString: $0) } ?? "")
    user = parts.user.map { ByteString(cString: $0) }
    password = parts.password.map { ByteString(cString: $0) }
  }

  init(plain text: ByteString, isEncrypted: Bool) {
    self.text = text
    self.isEncrypted = isEncrypted
    parsedOrigin = nil
    user = nil
    password = nil
  }

  var origin: Origin { parsedOrigin ?? plainOrigin }

  static func == (one: HTTPURL, other: HTTPURL) -> Bool {
    one.text == other.text && one.hasOrigin(of: other) && one.user == other.user
      && one.password == other.password
  }

  /// Whether both are of one scheme, host and port.
  func hasOrigin(of other: HTTPURL) -> Bool {
    isEncrypted == other.isEncrypted && origin == other.origin
  }

  /// The URL for messages.
  var shown: ByteString { Self.shown(text) }

  /// A text that couldn't be read as a URL, for messages: all before the last `@` may be a password.
  static func shownUnread(_ text: ByteString) -> ByteString {
    guard let at = text.bytes.lastIndex(of: UInt8(ascii: "@")) else { return shown(text) }
    let start = text.bytes.place(of: "//").map { text.bytes[..<$0.upperBound] }
    let hidden = ByteString(start ?? []) + SecretValue.mark
    return hidden + shown(ByteString(text.bytes[at...]))
  }

  /// A URL without user, password, query and fragment.
  static func bare(_ url: ByteString) -> ByteString {
    let shown = shown(url).bytes.prefix { $0 != UInt8(ascii: "?") }
    guard let user = shown.place(of: SecretValue.mark + "@") else {
      return ByteString(shown)
    }
    return ByteString(Array(shown[..<user.lowerBound]) + Array(shown[user.upperBound...]))
  }

  /// A URL for messages: user, password and the values of the query are replaced, and a fragment is
  /// left out.
  static func shown(_ url: ByteString) -> ByteString {
    var bytes = url.bytes[...]
    if let hash = bytes.firstIndex(of: UInt8(ascii: "#")) { bytes = bytes[..<hash] }
    var query: ByteString = ""
    if let mark = bytes.firstIndex(of: UInt8(ascii: "?")) {
      let pairs = bytes[(mark + 1)...].split(at: "&")
      let shown = pairs.map { pair -> [UInt8] in
        let name = pair.prefix { $0 != UInt8(ascii: "=") }
        // A name without a value is one.
        return name.count == pair.count && pair.isEmpty == false
          ? SecretValue.mark.bytes
          : pair.isEmpty ? [] : Array(name) + [UInt8(ascii: "=")] + SecretValue.mark.bytes
      }
      query = "?" + shown.joined(separator: "&")
      bytes = bytes[..<mark]
    }
    if let slashes = bytes.place(of: "//") {
      let rest = bytes[slashes.upperBound...]
      let authority = rest.prefix { $0 != UInt8(ascii: "/") }
      if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
        let start = ByteString(bytes[..<slashes.upperBound])
        return (start + SecretValue.mark + ByteString(bytes[at...]) + query)
          .truncated(to: 500)
      }
    }
    return (ByteString(bytes) + query).truncated(to: 500)
  }
}

extension SecretTexts {
  /// Adds the form that a secret text has in a URL or a form.
  package func addPercentEncoded(_ text: ByteString) { add(form: text.percentEncoded, of: text) }

  /// Whether a secret is in a text that is sent, as it is or as a URL has it.
  func occur(inSent text: ByteString) -> Bool {
    occur(in: text)
      || exist && text.bytes.contains(UInt8(ascii: "%")) && occur(in: text.percentDecoded)
  }

  /// A URL for messages without secrets; a script may have encoded them in a way of its own.
  func redacted(url: ByteString) -> ByteString {
    let plain = redacted(url)
    guard plain.bytes.contains(UInt8(ascii: "%")) else { return plain }
    let decoded = plain.percentDecoded
    let shown = redacted(decoded)
    return shown == decoded ? plain : shown.escapingControls
  }
}

extension ByteString {
  private static let digits = "0123456789ABCDEF".bytes
  private static let marks = "-._~".bytes

  /// The text for a part of a URL: all bytes but letters, digits and `-._~` are encoded.
  package var percentEncoded: ByteString {
    let (digits, marks) = (Self.digits, Self.marks)
    var encoded: [UInt8] = []
    for byte in bytes {
      if byte.isLetter || byte.isDigit || marks.contains(byte) {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return ByteString(encoded)
  }

  /// The text of a part of a URL: `%` and two hexadecimal digits are a byte.
  package var percentDecoded: ByteString {
    var decoded: [UInt8] = []
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2, let high = rest.first?.hexadecimalDigit,
        let low = rest.dropFirst().first?.hexadecimalDigit
      {
        decoded.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        decoded.append(byte)
      }
    }
    return ByteString(decoded)
  }
}

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
        host: ByteString(host),
        port: port.map { ByteString($0) } ?? (isEncrypted ? "443" : "80"))
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

  private static let start = "http://".bytes
  private static let secureStart = "https://".bytes

  /// Names whose last part begins with a letter, and IPv4 addresses: other numbers are addresses in forms
  /// that libcurl changes.
  private static func isPlain(host: Bytes) -> Bool {
    var labels = 0
    var start = host.startIndex
    while true {
      let label = host[start...].prefix { $0 != UInt8(ascii: ".") }
      labels += 1
      guard let first = label.first, isLowercase(first) || first.isDigit,
        label.allSatisfy({ isLowercase($0) || $0.isDigit || $0 == UInt8(ascii: "-") })
      else { return false }
      if label.endIndex == host.endIndex { return !first.isDigit || isAddress(host) }
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
    guard let first = number.first, number.count <= 5, number.allSatisfy(\.isDigit),
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
        guard byte.isLetter || byte.isDigit else { return false }
      }
      last = byte
    }
    return true
  }

  private static func isLowercase(_ byte: UInt8) -> Bool {
    byte.isLetter && byte.lowercased == byte
  }
}
