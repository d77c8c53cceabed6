package import FlowEngine
package import FlowRemote
internal import Glibc

/// Where a script's ops with `thread = "remote"` execute.
package struct RemoteSettings: Sendable {
  /// The servers, and how to reach them.
  package var servers: NATSSettings
  /// How long jobs wait while no machine could execute them.
  package var timeout = Duration.seconds(60)
  /// Whether servers of other machines may be reached without TLS.
  package var isInsecure = false
  /// The folders whose files all machines have: they aren't sent.
  package var shared = RemoteSharedFolders()
  /// The text of `FLOWLUA_REMOTE_KEY`, with which messages are sealed; nil for none.
  private var key: ByteString?

  /// Settings for servers, such as `nats://10.0.0.7` or several with commas between them.
  package init(url: ByteString) throws(FlowError) {
    servers = try NATSSettings(url)
  }

  /// Sets the text of `FLOWLUA_REMOTE_KEY`.
  package mutating func setKey(_ text: ByteString?) throws(FlowError) {
    if let text { try RemoteSeal.check(text) }
    key = text
  }

  /// What messages are sealed with; nil without a key.
  func seal() throws(FlowError) -> RemoteSeal? {
    guard let key else { return nil }
    return try RemoteSeal(text: key)
  }

  /// The URLs of the servers, without secrets.
  package var place: ByteString { servers.place }

  /// Whether all servers are on this machine.
  private var isLoopback: Bool {
    servers.servers.allSatisfy { url in
      let host = url.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 2).last ?? url.utf8[...]
      return ["127.", "localhost:", "[::1]:"].contains { host.starts(with: $0.utf8) }
    }
  }

  /// Whether the connection is encrypted, or leaves this machine nowhere.
  private var isPrivate: Bool { servers.tls.isRequired || isLoopback }

  /// Whether nobody else can read the data that is sent.
  var protectsSecrets: Bool { isPrivate || key != nil }

  /// Refuses a connection without encryption to another machine. A key doesn't replace it: who can read the connection
  /// finds the token of the server there.
  package func check() throws(FlowError) {
    if isInsecure || isPrivate { return }
    throw .usage(
      """
      the server '\(place)' is another machine, and the connection isn't encrypted: use tls://…, or \
      allow it (--insecure, or insecure = true)
      """)
  }
}
