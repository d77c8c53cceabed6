package import FlowEngine
package import FlowRemote
internal import FlowScripting
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// The values of fields that `flow.remote`, an option of the command line or a host gives beside the URL.
package struct RemoteDefaults: Sendable {
  /// How long jobs wait while no node could execute them; nil for the usual time.
  package var timeout: Duration?
  /// Whether servers of other computers may be reached without TLS.
  package var isInsecure = false
  /// The folders whose files all nodes have: they aren't sent.
  package var shared = RemoteSharedFolders()

  package init() {}
}

/// Where a script's ops with `thread = "remote"` execute.
package struct RemoteSettings: Sendable {
  /// The servers, and how to reach them.
  package let servers: NATSSettings
  /// How long jobs wait while no node could execute them.
  let timeout: Duration
  let shared: RemoteSharedFolders
  /// Whether all connections to the server stay on this computer or in tunnels of the secure shell: it is there for the
  /// script alone, or this node was started by such a script.
  package var isForOwnNodes = false
  /// Why none is left of the nodes that were started for the script; nil while there are some. Another thread sets it.
  package let loss = Locked<ByteString?>(nil)
  /// The text of `FLOWLUA_REMOTE_KEY`, with which messages are sealed; nil for none.
  private var key: ByteString?
  /// The URLs as they were given.
  private let text: ByteString

  /// Settings for servers, such as `nats://10.0.0.7` or several with commas between them. Refuses a connection without
  /// encryption to another computer. A key doesn't replace it: who can read the connection finds the token of the server
  /// there.
  package init(url: ByteString, _ options: RemoteDefaults) throws(FlowError) {
    servers = try NATSSettings(url)
    text = url
    timeout = options.timeout ?? .seconds(60)
    shared = options.shared
    if options.isInsecure || servers.isEncrypted || isLoopback { return }
    throw .usage(
      """
      the server '\(place)' is another computer, and the connection isn't encrypted: use tls://…, or \
      allow it (--insecure, or insecure = true)
      """)
  }

  /// Sets the text of `FLOWLUA_REMOTE_KEY`.
  package mutating func setKey(_ text: ByteString?) throws(FlowError) {
    if let text { try RemoteSeal.check(text) }
    key = text
  }

  /// The seal of messages; nil without a key.
  func seal() throws(FlowError) -> RemoteSeal? {
    guard let key else { return nil }
    return try RemoteSeal(text: key)
  }

  /// The URLs of the servers, without secrets.
  package var place: ByteString { servers.place }

  /// The hosts of the servers with their ports if all of them are on this computer; else none.
  package var loopbackPlaces: [ByteString] {
    servers.servers.allSatisfy { Self.isLoopback($0.host) } ? servers.servers.map(\.place) : []
  }

  /// Whether a host is this computer. A name such as `127.example.org` isn't.
  private static func isLoopback(_ host: ByteString) -> Bool {
    if host == "localhost" || host == "[::1]" { return true }
    var address = in_addr()
    let isAddress = host.withCString { inet_pton(AF_INET, $0, &address) } == 1
    return isAddress && host.hasPrefix("127.")
  }

  /// Whether the servers accept anybody, as far as can be known here, and messages aren't sealed.
  package var isOpenToAll: Bool {
    key == nil && servers.token == nil && servers.user == nil
  }

  /// Whether all servers are on this computer.
  private var isLoopback: Bool { !loopbackPlaces.isEmpty }

  /// The URLs with the token or the user, for another process.
  ///
  /// - Parameter ports: The ports through which that process reaches the servers, one for each; none if they are those of
  ///   the URLs.
  /// - Returns: The URLs with commas between them.
  package func url(ports: [Int] = []) -> ByteString {
    guard ports.count == servers.servers.count else { return text }
    return zip(servers.servers, ports).map { $0.url(port: $1) }.joined(separator: ",")
  }

  /// Whether nobody else can read the data that is sent. A server on this computer alone isn't enough: other nodes may
  /// have joined it without encryption.
  var protectsSecrets: Bool {
    servers.isEncrypted || key != nil || isForOwnNodes && isLoopback
  }
}
