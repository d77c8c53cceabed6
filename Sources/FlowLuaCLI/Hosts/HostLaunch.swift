internal import FlowEngine
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem

/// The launcher of the node on one host.
final class HostLaunch {
  private let host: HostOptions.Host
  private let settings: RemoteSettings
  private unowned let keeper: HostKeeper
  private var child: HostProgram?
  private(set) var hasEnded = false
  /// Why it isn't there any more: `'a' is lost: 'ssh' has ended with status 255`; nil while it is.
  private(set) var loss: ByteString?
  private var attempts = 0
  /// The line in which `ssh` says that a port of the host isn't free.
  private var refusal: ByteString?

  /// How often another port is tried.
  private static let mostAttempts = 5

  init(_ host: HostOptions.Host, _ settings: RemoteSettings, _ keeper: HostKeeper) {
    self.host = host
    self.settings = settings
    self.keeper = keeper
  }

  /// Starts it; returns the reason why there is no such program.
  func begin() -> ByteString? {
    attempts += 1
    refusal = nil
    let plan = keeper.plan
    let places = plan.usesSSH ? settings.loopbackPlaces : []
    let tunnels = places.map { (place: $0, port: Int.random(in: 20_000...31_999)) }
    var request = ProcessRequest(plan.command(on: host, tunnels: tunnels))
    request.input = .pipe
    var problem: ByteString?
    child = HostProgram(request, on: keeper.loop) { [weak self] in
      self?.take($0)
    } ended: { [weak self] end in
      guard let self else { return }
      if case .failed(let error) = end, [ENOENT, EACCES, ENOEXEC].contains(error.code ?? 0) {
        problem = error.message
        hasEnded = true
        return
      }
      ended(end)
    }
    // The token isn't among the words of the command, which every user of a node can read.
    let url = settings.url(ports: tunnels.map(\.port))
    child?.write(url + (plan.key.map { " " + $0 } ?? "") + "\n")
    return problem
  }

  // MARK: Its lines

  /// How the line of `ssh` begins that has no tunnel. An op may print anything.
  private static let refusedTunnel = "Error: remote port forwarding failed"

  private func take(_ line: ByteString) {
    if keeper.plan.usesSSH, line.hasPrefix(Self.refusedTunnel) {
      refusal = line
    } else {
      keeper.say("\(host.name): \(line)")
    }
  }

  // MARK: Its end

  private func ended(_ end: ProcessEnd) {
    child = nil
    if let refusal, !keeper.isEnding {
      if attempts < Self.mostAttempts, begin() == nil { return }
      keeper.say("\(host.name): \(refusal)")
    }
    hasEnded = true
    if !keeper.isEnding {
      let loss: ByteString = "'\(host.name)' \(reason(of: end))"
      self.loss = loss
      keeper.say("\(keeper.plan.program): host \(loss)")
    }
    keeper.ended()
  }

  private func reason(of end: ProcessEnd) -> ByteString {
    let launcher = keeper.plan.options.launcher[0]
    let command = keeper.plan.options.command[0]
    switch end {
    case .failed(let error): return "can't be reached: \(error.message)"
    case .exited(let result) where result.status == 127:
      return "has no program '\(command)': install it there, or name it with --hosts-command"
    case .exited(let result) where result.status == 0: return "has left"
    case .exited(let result):
      return result.signal.map { "is lost: '\(launcher)' was ended by signal \($0)" }
        ?? "is lost: '\(launcher)' has ended with status \(result.status)"
    default: return "is lost: the status of '\(launcher)' is unknown"
    }
  }

  /// Ends the input of the node, which ends it.
  func end() { child?.process.closeInput() }

  /// Stops the launcher.
  func stop() { child?.stop("the script has ended") }
}

/// A program that runs beside a script for `--hosts`, and its lines.
final class HostProgram: ProcessLineReader, ProcessInputWriter {
  let process: ChildProcess
  private let lines: ProcessLines
  private let take: (ByteString) -> Void

  /// Starts it; nil if it has ended at once, because there is no such program.
  init?(
    _ request: ProcessRequest, on loop: FlowEventLoop, _ take: @escaping (ByteString) -> Void,
    ended: @escaping (ProcessEnd) -> Void
  ) {
    process = loop.startChild(request, completion: ended)
    guard process.isPending else { return nil }
    self.take = take
    lines = process.makeLines()
    lines.open()
    readLines()
  }

  func received(_ line: ProcessLine?) {
    guard let line else { return }
    take(line.text)
    readLines()
  }

  private func readLines() {
    while case .line(let line) = lines.next(for: self) { take(line.text) }
  }

  /// Writes to its input; nothing waits until it has read that.
  func write(_ text: ByteString) { _ = process.write(text, for: self) }

  func inputAdvanced(isOpen: Bool) {}

  func stop(_ reason: ByteString) { process.cancel(because: SystemError(reason)) }
}

/// Which nodes are started for a script, and how.
struct HostPlan {
  let program: ByteString
  let options: HostOptions
  /// The server that the command line or the environment names; nil: one is started.
  let server: RemoteSettings?
  /// The text of `FLOWLUA_REMOTE_KEY` for the nodes; nil for none.
  let key: ByteString?
  let defaults: RemoteDefaults

  /// The settings of the script for a server.
  func settings(_ url: ByteString) throws(FlowError) -> RemoteSettings {
    var settings = try RemoteSettings(url: url, defaults)
    try settings.setKey(key)
    return settings
  }

  /// The address of a server that is started.
  var address: ByteString { options.address ?? "127.0.0.1" }

  /// The address as a URL has it.
  var serverName: ByteString { address.contains(":") ? "[\(address)]" : address }

  /// The settings of the script by what the process has replied that starts the nodes.
  func serverSettings(_ line: ByteString) throws(FlowError) -> RemoteSettings {
    guard line.hasPrefix(Self.ready) else {
      throw FlowError(
        .error, line.isEmpty ? "the process that starts the nodes has ended" : line)
    }
    if let server { return server }
    var settings = try settings(ByteString(line.bytes.dropFirst(Self.ready.count)))
    settings.isForOwnNodes = options.address == nil
    return settings
  }

  /// How the one line begins that the process writes when the nodes are being started, with the URL of the server. Another
  /// line is the reason why nothing was started.
  static let ready: ByteString = "ready "

  /// Whether the launcher is the secure shell, which has options of its own. Another program may start it.
  var usesSSH: Bool {
    options.launcher.contains { $0.fileName.equals("ssh") }
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

  /// The command that starts a node.
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
        words += ["-R", "\(ByteString(place.bytes[..<end])):\(port):\(place)"]
      }
    }
    if !options.launcher.contains(where: { $0.contains(Self.place) }) { words.append(host.name) }
    words += options.command + ["--join", "-"]
    // A shell of the host may read the words again.
    let isPlain = host.name.bytes.allSatisfy {
      $0.isLetter || $0.isDigit || "._-@:%".bytes.contains($0)
    }
    if isPlain, RemoteOptions.isName(host.name) { words += ["--name", host.name] }
    if let workers = host.workers { words += ["--workers", workers] }
    if defaults.isInsecure { words.append("--insecure") }
    return words
  }
}
