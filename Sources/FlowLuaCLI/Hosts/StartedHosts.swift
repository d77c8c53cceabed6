internal import FlowEngine
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem

/// The nodes that `--hosts` has started for a script: another process keeps them, and ends them with this one.
final class StartedHosts {
  /// Those of the server that they join.
  let settings: RemoteSettings
  private let plan: HostPlan
  private let process: pid_t
  private let output: Int32
  private var lifeline: Int32
  private let owner = getpid()
  private var reader: pthread_t?

  // Unsafe: set once, before the process exits and reads it; both on the main thread.
  private nonisolated(unsafe) static var current: StartedHosts?

  /// How many milliseconds the process has for the end of all nodes.
  private static let patience: Int32 = 15_000

  /// Starts the nodes.
  ///
  /// - Parameters:
  ///   - arguments: The command line.
  ///   - server: The server that it names, if it does.
  /// - Returns: The nodes; nil without the option.
  /// - Throws: The host that can't be started, as a misuse of the option.
  static func start(
    _ arguments: CommandLineArguments, server: RemoteSettings?
  ) throws(CommandLineArguments.Misuse) -> StartedHosts? {
    guard let options = arguments.options.remote, let hosts = options.started else { return nil }
    try hosts.check(hasServer: server != nil)
    var key = RemoteOptions.key(arguments)
    if let text = key, text.bytes.contains(UInt8(ascii: "\n")) {
      throw failure("a key with a line end can't be sent to a node (FLOWLUA_REMOTE_KEY)")
    }
    // Other computers may read what goes to an address of this one.
    if key == nil, hosts.address != nil { key = RemoteOptions.randomText }
    let plan = HostPlan(
      program: arguments.program, options: hosts, server: server, key: key,
      defaults: options.defaults)
    if plan.usesSSH, let server, !server.loopbackPlaces.isEmpty, server.isOpenToAll {
      throw failure(
        "the server '\(server.place)' would be open to all users of the hosts, who could execute code there: "
          + "give it a token, or set FLOWLUA_REMOTE_KEY")
    }
    if server == nil, let address = hosts.address {
      // Before anything is started.
      do throws(FlowError) { _ = try plan.settings("nats://\(plan.serverName)") } catch {
        throw LongOptions.misuse("option '--hosts-address' \(address): \(error.message)")
      }
    }
    return try start(plan)
  }

  private static func failure(_ reason: ByteString) -> CommandLineArguments.Misuse {
    CommandLineArguments.Misuse(
      message: "option '--hosts': \(reason)", status: 1, showsUsage: false)
  }

  private static func start(
    _ plan: HostPlan
  ) throws(CommandLineArguments.Misuse) -> StartedHosts {
    var output: Int32 = -1
    var lifeline: Int32 = -1
    let process = flowsystem_begin_helper("flowlua-hosts" as String, &output, &lifeline)
    if process < 0 { throw failure(systemMessage(errno)) }
    if process == 0 { keep(plan) }
    do {
      let reply = NodeStarter.readLine(output) ?? ""
      let started = StartedHosts(
        try plan.serverSettings(reply), plan, process, output, lifeline)
      current = started
      atexit { StartedHosts.current?.end() }
      return started
    } catch {
      close(lifeline)
      close(output)
      waitpid(process, nil, 0)
      throw CommandLineArguments.Misuse(
        message: error.message, status: 1, showsUsage: false)
    }
  }

  /// The work of the other process.
  private static func keep(_ plan: HostPlan) -> Never {
    do throws(SystemError) {
      exit(try HostKeeper(plan).run())
    } catch {
      Output.write("option '--hosts': \(error.message)\n", toError: false)
      exit(1)
    }
  }

  private init(
    _ settings: RemoteSettings, _ plan: HostPlan, _ process: pid_t, _ output: Int32,
    _ lifeline: Int32
  ) {
    self.settings = settings
    self.plan = plan
    self.process = process
    self.output = output
    self.lifeline = lifeline
  }

  /// Begins to show what is said about the nodes, on a thread: the script may be busy. Called in the sandbox.
  func beginReading() throws(CommandLineArguments.Misuse) {
    // Only they can execute ops if the server is theirs.
    let loss = plan.server == nil ? settings.loss : nil
    let (output, program) = (output, plan.program)
    do throws(SystemError) {
      reader = try SignalFreeThread.start(isDetached: false) { Self.show(output, program, loss) }
    } catch {
      throw Self.failure(error.message)
    }
  }

  /// Lines with more bytes are shown in parts.
  private static let longestLine = 65_536

  private static func show(
    _ descriptor: Int32, _ program: ByteString, _ loss: Locked<ByteString?>?
  ) {
    let mark: ByteString = "\(program): \(HostKeeper.noneLeft)"
    var splitter = LineSplitter()
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { return }
      buffer.withUnsafeBytes { bytes in
        splitter.add(UnsafeRawBufferPointer(rebasing: bytes[..<count])) { line in
          Output.write(line + "\n", toError: true)
          guard line.hasPrefix(mark) else { return }
          loss?.withLock { $0 = ByteString(line.bytes.dropFirst(program.count + 2)) }
        }
      }
      if splitter.partCount > Self.longestLine {
        Output.write(splitter.takePart() + "\n", toError: true)
      }
    }
  }

  /// Ends the nodes, and waits for that.
  func end() {
    // A forked process has none.
    guard lifeline >= 0, getpid() == owner else { return }
    let hasEnded = flowsystem_end_helper(process, lifeline, Self.patience)
    lifeline = -1
    // It reads the last lines.
    if hasEnded, let reader { pthread_join(reader, nil) }
  }
}

/// The process that has started this one as a node: it sends the URL of the server over standard input, whose end says
/// that the node isn't needed any more.
final class NodeStarter {
  let url: ByteString
  /// The text with which messages are sealed; nil for the environment's.
  let key: ByteString?
  /// Whether the input has ended.
  private(set) var isGone = false
  /// Called when it ends.
  var onGone: (() -> Void)?
  private let input: Int32
  private var watch: DescriptorWatch?

  private static let mostBytes = 1 << 16

  /// Reads the line, which has the key after the URL and a space.
  init() throws(CommandLineArguments.Misuse) {
    // The programs of jobs get no input, and can't take this one.
    input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
    let nothing = open("/dev/null" as String, O_RDONLY | O_CLOEXEC)
    guard input >= 0, nothing >= 0, dup2(nothing, STDIN_FILENO) >= 0 else {
      throw LongOptions.misuse("option '--join -': \(systemMessage(errno))")
    }
    close(nothing)
    guard let line = Self.readLine(input), !line.isEmpty else {
      throw LongOptions.misuse(
        """
        option '--join -' reads the URL of the server from the first line of standard input, which has ended before: \
        does the launcher pass it on? (docker exec -i)
        """)
    }
    let bytes = line.bytes
    let space = bytes.firstIndex(of: UInt8(ascii: " ")) ?? bytes.endIndex
    url = ByteString(bytes[..<space])
    let rest = bytes[space...].dropFirst()
    key = rest.isEmpty ? nil : ByteString(rest)
  }

  /// The first line, byte by byte: what follows stays there. Nil for one that doesn't end.
  static func readLine(_ input: Int32) -> ByteString? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while line.count < mostBytes {
      let count = read(input, &byte, 1)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        var waiting = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, -1)
        continue
      }
      if count <= 0 { return nil }
      if byte == UInt8(ascii: "\n") { return ByteString(line) }
      line.append(byte)
    }
    return nil
  }

  /// Begins to wait for the end of the input.
  ///
  /// - Throws: A `SystemError` for a file, which has no end to wait for.
  func watch(on loop: FlowEventLoop) throws(SystemError) {
    watch = try loop.watch(input, ClosureJob { [weak self] in self?.inputIsReady() })
  }

  private func inputIsReady() {
    var bytes = [UInt8](repeating: 0, count: 512)
    let count = read(input, &bytes, bytes.count)
    // Nothing more is expected.
    if count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR) { return }
    watch?.end()
    isGone = true
    onGone?()
  }
}
