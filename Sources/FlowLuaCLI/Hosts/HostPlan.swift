internal import FlowEngine
internal import FlowScripting

/// Which machines are started for a script, and how.
struct HostPlan {
  let program: ByteString
  let options: HostOptions
  /// The server that the command line or the environment names; nil: one is started.
  let server: RemoteSettings?
  /// The text of `FLOWLUA_REMOTE_KEY` for the machines; nil for none.
  let key: ByteString?
  let isInsecure: Bool
  let shared: RemoteSharedFolders
  let timeout: Duration?

  /// The settings of the script for a server.
  func settings(_ url: ByteString) throws(FlowError) -> RemoteSettings {
    var settings = try RemoteSettings(url: url)
    settings.isInsecure = isInsecure
    settings.shared = shared
    if let timeout { settings.timeout = timeout }
    try settings.check()
    try settings.setKey(key)
    return settings
  }

  /// The address of a server that is started.
  var address: ByteString { options.address ?? "127.0.0.1" }

  /// The same in a URL.
  var serverName: ByteString { address.contains(":") ? "[\(address)]" : address }

  /// The settings of the script by what the process has replied that starts the machines.
  func serverSettings(_ line: ByteString) throws(FlowError) -> RemoteSettings {
    switch HostReply(line: line) {
    case .failed(let reason): throw FlowError(.error, reason)
    case .ready(let url):
      if let server { return server }
      var settings = try settings(url)
      settings.isForOwnMachines = options.address == nil
      return settings
    }
  }

  /// Whether the launcher is the secure shell, which has options of its own. Another program may start it.
  var usesSSH: Bool {
    options.launcher.contains { word in
      word.bytes.split(separator: UInt8(ascii: "/")).last?.elementsEqual("ssh".utf8) == true
    }
  }

  /// Where the launcher has the name of the host, unless that is its last word.
  private static let place: ByteString = "{}"

  private static func filled(_ word: ByteString, _ host: ByteString) -> ByteString {
    var filled: [UInt8] = []
    var rest = word.bytes[...]
    while let found = rest.place(of: place) {
      filled += rest[..<found.lowerBound] + host.bytes
      rest = rest[found.upperBound...]
    }
    return ByteString(filled + rest)
  }

  /// The command that starts a machine.
  ///
  /// - Parameters:
  ///   - host: The host.
  ///   - tunnels: The servers that `ssh` makes reachable there, and the ports for them.
  /// - Returns: The words of the launcher and of the command that it executes.
  func command(
    on host: HostOptions.Host, tunnels: [(place: ByteString, port: Int)]
  ) -> [ByteString] {
    var words = options.launcher.map { Self.filled($0, host.name) }
    if usesSSH {
      // The first value of an option counts: the user's own come before.
      words += [
        "-o", "BatchMode=yes", "-o", "ControlPath=none", "-o", "ServerAliveInterval=15", "-o",
        "ExitOnForwardFailure=yes", "-T",
      ]
      for (place, port) in tunnels {
        let end = place.bytes.lastIndex(of: UInt8(ascii: ":")) ?? 0
        words += ["-R", "\(ByteString(Array(place.bytes[..<end]))):\(port):\(place)"]
      }
    }
    if !options.launcher.contains(where: { $0.contains(Self.place) }) { words.append(host.name) }
    words += options.command + ["--join", "-"]
    // A shell of the host may read the words again.
    let isPlain = host.name.bytes.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "._-@:%".utf8.contains(byte)
    }
    if isPlain, RemoteOptions.isName(host.name) { words += ["--name", host.name] }
    if let workers = host.workers { words += ["--workers", workers] }
    if isInsecure { words.append("--insecure") }
    return words
  }
}
