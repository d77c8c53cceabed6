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
  private static let usualPort: UInt16 = 4222
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
    servers.map(\.url).joined(separator: ",")
  }

  private mutating func add(_ url: ByteString) throws(FlowError) {
    let server = try Server(url)
    if server.isEncrypted { isEncrypted = true }
    servers.append(server)
    guard let first = server.user else { return }
    let others = (token, user, password)
    if let second = server.password {
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
    let isEncrypted: Bool
    /// Of IPv6 with its brackets.
    package let host: ByteString
    private let port: UInt16
    /// The URL as it was given, up to the host.
    private let start: ByteString
    /// Decoded.
    fileprivate let user: ByteString?
    fileprivate let password: ByteString?

    /// The host with the port.
    package var place: ByteString { "\(host):\(port)" }
    /// The URL without user and password: `nats://host:port` or `tls://host:port`.
    package var url: ByteString { "\(isEncrypted ? "tls" : "nats")://\(place)" }
    /// The URL with the user, and with another port.
    package func url(port: Int) -> ByteString { "\(start)\(host):\(port)" }

    fileprivate init(_ url: ByteString) throws(FlowError) {
      isEncrypted = url.hasPrefix("tls://")
      guard isEncrypted || url.hasPrefix("nats://") else { throw wrongForm(url) }
      var rest = url.bytes.dropFirst(isEncrypted ? 6 : 7)
      if rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
      var credentials: [ByteString] = []
      if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
        let parts = rest[..<at].split(at: ":", maxSplits: 1)
        credentials = parts.compactMap { ByteString($0, decoding: "%") }
        guard credentials.count == parts.count, !credentials[0].isEmpty,
          !credentials.contains(where: { $0.bytes.contains(0) })
        else {
          throw wrongForm(url)
        }
        rest = rest[(at + 1)...]
      }
      user = credentials.first
      password = credentials.count > 1 ? credentials[1] : nil
      start = ByteString(url.bytes[..<rest.startIndex])
      let isIPv6 = rest.first == UInt8(ascii: "[")
      let bracket = isIPv6 ? rest.firstIndex(of: UInt8(ascii: "]")) : rest.startIndex
      guard let bracket else { throw wrongForm(url) }
      let colon = rest[bracket...].firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
      let (name, digits) = (rest[..<colon], rest[colon...].dropFirst())
      let isName = name.allSatisfy { $0 > 0x20 && $0 != 0x7F && !"/?#".bytes.contains($0) }
      guard isName, !name.isEmpty, !isIPv6 || name.last == UInt8(ascii: "]"),
        digits.isEmpty == (colon == rest.endIndex), digits.allSatisfy(\.isDigit)
      else { throw wrongForm(url) }
      host = ByteString(name)
      let number = digits.isEmpty ? usualPort : UInt16(String(decoding: digits, as: UTF8.self))
      guard let number, number > 0 else {
        throw .usage(
          "the port of a URL is a number from 1 to 65535, not '\(ByteString(digits))'")
      }
      port = number
    }
  }
}
