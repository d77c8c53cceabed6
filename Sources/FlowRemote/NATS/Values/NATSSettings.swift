package import FlowEngine

/// Where the servers are, and who connects.
package struct NATSSettings: Sendable {
  package private(set) var servers: [Server] = []
  package var token: ByteString?
  package var user: ByteString?
  package var password: ByteString?
  /// Whether a connection without encryption fails; a server may demand it without that. Its certificate is always
  /// checked.
  package private(set) var isEncrypted = false

  /// The port of a URL without one.
  private static let usualPort = 4222
  private static let mostServers = 64

  /// Reads the URLs of servers of one cluster, separated by commas: `nats://host`, `tls://host:port`,
  /// `nats://token@host`, `nats://user:password@host`.
  ///
  /// - Throws: A `FlowError` of kind `usage` that says which form is expected.
  package init(_ urls: ByteString) throws(FlowError) {
    let parts = urls.split(at: ",")
    if parts.count > Self.mostServers {
      throw .usage("at most \(Self.mostServers) servers can be given")
    }
    if parts.count > 1, parts.contains(where: \.isEmpty) {
      throw .usage("the URLs have commas between them, and one of them is empty")
    }
    for part in parts { try add(ByteString(part)) }
  }

  /// The servers for error messages.
  package var place: ByteString {
    servers.map(\.url).reduce("") { $0.isEmpty ? $1 : $0 + "," + $1 }
  }

  private mutating func add(_ url: ByteString) throws(FlowError) {
    guard let parts = Server(url) else { throw Self.wrongForm(url) }
    if let port = parts.wrongPort {
      throw .usage("the port of a URL is a number from 1 to 65535, not '\(port)'")
    }
    if parts.isEncrypted { isEncrypted = true }
    servers.append(parts)
    guard let first = parts.user else { return }
    let others = (token, user, password)
    if let second = parts.password {
      (token, user, password) = (nil, first, second)
    } else {
      (token, user, password) = (first, nil, nil)
    }
    let isOther = others.0 != nil || others.1 != nil
    if isOther, (token, user, password) != others {
      throw .usage("the URLs of the servers have different users; all servers get the same one")
    }
  }

  /// The error for a URL, of which it doesn't show the user and password.
  private static func wrongForm(_ url: ByteString) -> FlowError {
    let at = url.bytes.lastIndex(of: UInt8(ascii: "@"))
    let shown = at.map { "…\(ByteString(url.bytes[$0...]))" as ByteString } ?? url
    return .usage(
      "'\(shown)' isn't the URL of a NATS server: nats://HOST[:PORT] or tls://HOST[:PORT] is expected, also with "
        + "TOKEN@ or USER:PASSWORD@ before the host")
  }

  /// A server, by the parts of its URL.
  package struct Server: Sendable {
    private(set) var isEncrypted = false
    /// Of IPv6 with its brackets.
    package private(set) var host: ByteString = ""
    private var port = NATSSettings.usualPort
    /// The digits of a port that can't be one.
    fileprivate var wrongPort: ByteString?
    /// Decoded.
    fileprivate var user: ByteString?
    fileprivate var password: ByteString?

    /// The host with the port.
    package var place: ByteString { "\(host):\(port)" }
    /// The URL without user and password: `nats://host:port` or `tls://host:port`.
    package var url: ByteString { "\(isEncrypted ? "tls" : "nats")://\(place)" }

    fileprivate init?(_ url: ByteString) {
      var rest = url.bytes[...]
      if rest.hasPrefix("nats://") {
        rest = rest.dropFirst(7)
      } else if rest.hasPrefix("tls://") {
        rest = rest.dropFirst(6)
        isEncrypted = true
      } else {
        return nil
      }
      if rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
      if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
        guard readUser(rest[..<at]) else { return nil }
        rest = rest[(at + 1)...]
      }
      guard readHost(rest) else { return nil }
    }

    private mutating func readUser(_ text: ArraySlice<UInt8>) -> Bool {
      let parts = text.split(at: ":", maxSplits: 1)
      guard let first = Self.decoded(parts[0]), !first.isEmpty else { return false }
      user = first
      if parts.count == 1 { return true }
      password = Self.decoded(parts[1])
      return password != nil
    }

    private mutating func readHost(_ text: ArraySlice<UInt8>) -> Bool {
      var name = text
      var digits: ArraySlice<UInt8>?
      let colon = UInt8(ascii: ":")
      if text.first == UInt8(ascii: "[") {
        guard let end = text.firstIndex(of: UInt8(ascii: "]")) else { return false }
        name = text[...end]
        let rest = text[(end + 1)...]
        if !rest.isEmpty {
          guard rest.first == colon else { return false }
          digits = rest.dropFirst()
        }
      } else if let place = text.firstIndex(of: colon) {
        name = text[..<place]
        digits = text[(place + 1)...]
      }
      let isName = name.allSatisfy {
        $0 > 0x20 && $0 != 0x7F && $0 != 0x2F && $0 != 0x3F && $0 != 0x23
      }
      guard !name.isEmpty, isName else { return false }
      host = ByteString(name)
      guard let digits else { return true }
      guard !digits.isEmpty, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return false }
      if let number = UInt16(String(decoding: digits, as: UTF8.self)), number > 0 {
        port = Int(number)
      } else {
        wrongPort = ByteString(digits)
      }
      return true
    }

    /// The text with the bytes that `%` and two digits stand for; nil for a wrong form, and for a NUL byte.
    private static func decoded(_ text: ArraySlice<UInt8>) -> ByteString? {
      var bytes: [UInt8] = []
      var rest = text
      while let byte = rest.popFirst() {
        guard byte == UInt8(ascii: "%") else {
          bytes.append(byte)
          continue
        }
        let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == 2 else { return nil }
        bytes.append(UInt8(digits[0] << 4 | digits[1]))
        rest = rest.dropFirst(2)
      }
      return bytes.allSatisfy { $0 != 0 } ? ByteString(bytes) : nil
    }
  }
}
