internal import FlowSystem

/// The programs of a loop: those that run, and those that wait for room.
package final class ProcessTable: LoopPrograms {
  private unowned let loop: FlowEventLoop
  private var running: [ObjectIdentifier: ChildProcess] = [:]
  private var waiting = FIFO<ChildProcess>()
  /// Those whose input is a named pipe that nobody has written to.
  private var withoutWriter: [ObjectIdentifier: ChildProcess] = [:]
  private var isStarting = false
  /// Programs that wait for readers of their lines, or have done so.
  private var heldBack: [ObjectIdentifier: ChildProcess] = [:]
  private var isContinuing = false
  /// Executes programs instead of the system, for tests.
  package var replacement: (any ProcessReplacement)?
  /// Those that the system has stopped because they ask on the terminal, and the one that has got it.
  private var asking: [ChildProcess] = []
  private var guest: ChildProcess?
  private var stopTimer: LoopTimer?

  init(_ loop: FlowEventLoop) {
    self.loop = loop
  }

  deinit { killAll() }

  /// Ends all programs at once, without reporting it.
  package func killAll() {
    for child in waiting.all { child.abandon() }
    for child in withoutWriter.values { child.abandon() }
    for child in running.values { child.abandon() }
    waiting.removeAll()
    withoutWriter = [:]
    running = [:]
    heldBack = [:]
  }

  /// Stops all programs that `isMeant` selects, for a reason.
  package func cancelAll(_ reason: any Error, where isMeant: (ChildProcess) -> Bool) {
    let children = waiting.all + withoutWriter.values + running.values
    for child in children where isMeant(child) { child.cancel(because: reason) }
  }

  var areEnding: Bool { running.values.contains(where: \.isEnding) }

  func start(
    _ request: ProcessRequest, completion: @escaping ChildProcess.Completion
  ) -> ChildProcess {
    let child = ChildProcess(request, on: loop, completion: completion)
    if loop.isShutDown {
      child.finish(.refused("a program was started on an event loop that was shut down"))
    } else if let problem = request.problem {
      child.finish(.refused(problem))
    } else if let replacement {
      if let problem = replacement.problem(with: request) {
        child.finish(.refused(problem))
      } else {
        running[ObjectIdentifier(child)] = child
        child.begin(replacedBy: replacement)
      }
    } else {
      withoutWriter[ObjectIdentifier(child)] = child
      child.awaitWriter { [unowned self] child in
        withoutWriter[ObjectIdentifier(child)] = nil
        waiting.append(child)
        startWaiting()
      }
    }
    return child
  }

  /// Called when a program has ended, or a waiting program isn't to be started any more.
  func ended(_ child: ChildProcess, _ end: ProcessEnd) {
    if child === guest { takeTerminalBack(end) }
    heldBack[ObjectIdentifier(child)] = nil
    withoutWriter[ObjectIdentifier(child)] = nil
    if running.removeValue(forKey: ObjectIdentifier(child)) != nil { startWaiting() }
  }

  /// Starts programs, first come first served, until there is no room.
  private func startWaiting() {
    // A failed start is reported at once, which may lead to another call.
    guard !isStarting else { return }
    isStarting = true
    defer { isStarting = false }
    while let child = waiting.first {
      if child.isPending, !start(child) { return }
      waiting.removeFirst(1)
    }
  }

  /// Starts a program, or reports why it can't be started; false when it has to wait.
  private func start(_ child: ChildProcess) -> Bool {
    var spawned = flowsystem_spawned()
    // The last descriptors are reserved for files of the script; a program that runs alone may use
    // them.
    do throws(SystemError) {
      try child.request.spawn(
        &spawned, namedPipe: child.namedPipe, keepsReserve: !running.isEmpty)
      running[ObjectIdentifier(child)] = child
      child.begin(spawned)
      if loop.onTerminalRequest != nil { lookForStops() }
    } catch {
      // A program that ends makes room. If none is running, waiting would never end.
      let isShort = [EMFILE, ENFILE, EAGAIN, ENOMEM].contains(error.code ?? 0)
      if isShort, !running.isEmpty { return false }
      child.finish(.failed(error))
    }
    return true
  }

  // MARK: The terminal

  /// How often programs are asked whether the system has stopped them.
  private static let stopInterval = Duration.milliseconds(100)

  /// Looks again and again, while programs are running, whether one of them asks on the terminal.
  private func lookForStops() {
    guard stopTimer == nil, !running.isEmpty else { return }
    stopTimer = loop.scheduleAside(after: Self.stopInterval) { [weak self] in
      guard let self else { return }
      stopTimer = nil
      noteStops()
      lookForStops()
    }
  }

  private func noteStops() {
    // Those that were started first ask first.
    for child in running.values.sorted(by: { $0.processNumber ?? 0 < $1.processNumber ?? 0 }) {
      switch child.stopSignal {
      case SIGTTIN, SIGTTOU: asking.append(child)
      case SIGTSTP where child === guest:
        // Ctrl-Z reaches only it. When it continues, it asks again.
        takeTerminalBack(nil)
        raise(SIGTSTP)
      default: break
      }
    }
    asking.removeAll { !$0.isPending }
    guard guest == nil, let next = asking.first else { return }
    // Programs in the group of this process may read the terminal, too.
    guard !running.values.contains(where: \.sharesGroup) else { return }
    switch flowsystem_seek_terminal() {
    case FLOWSYSTEM_HAS_TERMINAL:
      asking.removeFirst()
      if flowsystem_is_status_shown() { loop.onTerminalRequest?(next.request.argv[0]) }
      if next.takeTerminal() { guest = next }
    // As any job does that reads the terminal in the background.
    case FLOWSYSTEM_IN_BACKGROUND: raise(SIGTTIN)
    default: break
    }
  }

  /// Takes the terminal back; if Ctrl-C has ended the program that had it, that was meant for this process as well.
  private func takeTerminalBack(_ end: ProcessEnd?) {
    guest = nil
    flowsystem_take_terminal_back()
    if case .exited(let result)? = end, result.rawStatus == -SIGINT { raise(SIGINT) }
  }

  /// Called by a program that waits for readers of its lines.
  func holdsBack(_ child: ChildProcess) { heldBack[ObjectIdentifier(child)] = child }

  var areHeldBack: Bool { !heldBack.isEmpty }

  /// Soon continues those of them for whose end code waits. A program may end then.
  func continueAwaited() {
    if heldBack.isEmpty || isContinuing { return }
    isContinuing = true
    loop.enqueue { [weak self] in
      guard let self else { return }
      isContinuing = false
      for (id, child) in heldBack where !child.continueIfAwaited() { heldBack[id] = nil }
    }
  }

  /// Continues programs that wait for readers of their lines: the readers have forgotten them, or wait
  /// for their end.
  func continueAll() -> Bool {
    let paused = running.values.filter(\.waitsForReaders)
    for child in paused { child.lift() }
    return !paused.isEmpty
  }
}

extension ProcessRequest {
  /// Starts the program. Its input is the named pipe, if that isn't negative.
  func spawn(
    _ spawned: inout flowsystem_spawned, namedPipe: Int32, keepsReserve: Bool
  ) throws(SystemError) {
    let words = CStrings(argv)
    let variables = environment.isEmpty ? nil : CStrings(mergedEnvironment())
    let folder = cwd.map { CStrings([$0]) }
    // An incomplete list would be another command.
    for list in [words, variables, folder] where list?.isComplete == false {
      throw failure(ENOMEM)
    }
    var request = flowsystem_spawn_request()
    request.argv = UnsafePointer(words.pointers)
    request.environment = variables.map { UnsafePointer($0.pointers) }
    request.cwd = folder.flatMap { $0.pointers[0] }.map { UnsafePointer($0) }
    request.keeps_reserve = keepsReserve
    let outputs = Int32(sharesOutput ? FLOWSYSTEM_INHERIT : FLOWSYSTEM_PIPE)
    request.streams = (Int32(FLOWSYSTEM_NOTHING), outputs, outputs)
    var files: [Int32] = []
    defer { for file in files { close(file) } }
    switch input {
    case .nothing: break
    case .bytes, .pipe: request.streams.0 = Int32(FLOWSYSTEM_PIPE)
    case .inherited: request.streams.0 = Int32(FLOWSYSTEM_INHERIT)
    case .file where namedPipe >= 0: request.streams.0 = namedPipe
    case .file(let path):
      request.streams.0 = try Self.open(path, writing: false)
      files.append(request.streams.0)
    }
    if let output {
      request.streams.1 = try Self.open(output, writing: true)
      files.append(request.streams.1)
    }
    let problem = withExtendedLifetime((words, variables, folder)) {
      flowsystem_spawn(&request, &spawned)
    }
    if problem != 0 { throw failure(problem) }
  }

  static func open(_ path: ByteString, writing: Bool) throws(SystemError) -> Int32 {
    let opened = path.withCString { flowsystem_open_stream($0, writing) }
    guard let opened, opened < 0 else { return opened ?? -1 }
    let number = errno
    throw SystemError(writing ? "write" : "read", path, number)
  }

  private func mergedEnvironment() -> [ByteString] {
    var merged: [ByteString] = []
    var entry = environ
    while let text = entry.pointee {
      let bytes = Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
      let name = ByteString(bytes.prefix { $0 != UInt8(ascii: "=") })
      if environment[name] == nil { merged.append(ByteString(bytes)) }
      entry += 1
    }
    for (name, value) in environment {
      if let value { merged.append("\(name)=\(value)") }
    }
    return merged
  }

  /// The reason why the program couldn't be started. The system has one number for several reasons.
  func failure(_ number: Int32) -> SystemError {
    let program = argv[0]
    var reason = systemMessage(number)
    if let cwd, let folder = Self.folderProblem(cwd) {
      return SystemError(
        "can't run '\(program)' in '\(cwd)': \(systemMessage(folder))", code: folder)
    }
    let isPath = program.bytes.contains(UInt8(ascii: "/"))
    switch number {
    case ENOENT where isPath && cwd == nil && program.withCString { access($0, F_OK) } == 0:
      reason = "the interpreter in its first line doesn't exist"
    case ENOENT: reason = (isPath ? "no such program" : "no such program on the PATH") + wordsHint
    case EACCES where Sandbox.present?.allowsPrograms == false:
      reason = "the sandbox allows no programs (--allow-run)"
    case EACCES where Sandbox.present != nil:
      reason = "not an executable program, or not one of the sandbox's folders (--allow-read)"
    case EACCES: reason = "not an executable program (\(reason))"
    case ENOEXEC: reason = "not a program of this system, nor a script with a first line '#!'"
    default: break
    }
    return SystemError("can't run '\(program)': \(reason)", code: number)
  }

  /// The hint what to write instead of a command line that was given as the name of a program; empty for another
  /// name.
  private var wordsHint: ByteString {
    guard argv.count == 1, argv[0].bytes.contains(UInt8(ascii: " ")) else { return "" }
    // A path may have spaces.
    let first = ByteString(argv[0].bytes.prefix { $0 != UInt8(ascii: " ") })
    if first.bytes.contains(UInt8(ascii: "/")), first.withCString({ access($0, X_OK) }) != 0 {
      return ""
    }
    return Self.hint(forCommandLine: argv[0])
  }

  /// The hint what to write instead of a command line.
  package static func hint(forCommandLine line: ByteString) -> ByteString {
    let words = line.bytes.split(separator: UInt8(ascii: " ")).map { ByteString($0) }
    if !Set("\"'\\|<>&;$*`~#".bytes).isDisjoint(with: line.bytes) {
      return "; a command line is for a shell: { \"sh\", \"-c\", … }"
    }
    let list = words.reduce("") { $0.isEmpty ? "\"\($1)\"" : "\($0), \"\($1)\"" as ByteString }
    return "; its arguments are strings of their own: { \(list) }"
  }

  private static func folderProblem(_ path: ByteString) -> Int32? {
    var status = stat()
    guard path.withCString({ stat($0, &status) }) == 0 else { return errno }
    if status.st_mode & S_IFMT != S_IFDIR { return ENOTDIR }
    return path.withCString { access($0, X_OK) } == 0 ? nil : errno
  }
}

/// Copies of strings in the form of a C list.
private final class CStrings {
  let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  private let count: Int

  /// Whether there was memory for all of them.
  var isComplete: Bool { (0..<count).allSatisfy { pointers[$0] != nil } }

  init(_ strings: [ByteString]) {
    count = strings.count
    pointers = .allocate(capacity: count + 1)
    pointers.initialize(repeating: nil, count: count + 1)
    for (index, string) in strings.enumerated() {
      pointers[index] = string.withCString { strdup($0) } ?? nil
    }
  }

  deinit {
    for index in 0..<count { free(pointers[index]) }
    pointers.deallocate()
  }
}

extension FlowEventLoop {
  /// The child processes of the loop; the table is made for the first one.
  package var processes: ProcessTable {
    if let table = programs as? ProcessTable { return table }
    let made = ProcessTable(self)
    programs = made
    return made
  }

  /// Ends the programs of all loops with this process, however it ends: when it exits, and when
  /// SIGHUP, SIGINT, SIGQUIT, SIGPIPE or SIGTERM end it. Each program has a process group of its
  /// own, which a terminal's Ctrl-C doesn't reach.
  ///
  /// Handlers are installed with the first program, and only for signals that have the default
  /// action at that time: a program that handles them itself has to cancel its programs itself.
  package static func endProgramsWithProcess() { flowsystem_end_programs_with_process() }

  /// Ends the programs of all loops now, with their child processes: they get SIGTERM and, after a
  /// second, SIGKILL. Their ends are reported when their loops continue.
  package static func endPrograms() { flowsystem_end_programs() }

  /// Whether any program of this loop was asked to end, and hasn't ended yet.
  package var areProgramsEnding: Bool { hasProcesses && processes.areEnding }

  /// Kills all programs of this loop, with their child processes, because a process that is about
  /// to end would leave them running. Their ends aren't reported, so their ops never end.
  package func killProcesses() {
    checkThread()
    programs?.killAll()
  }

  /// Starts a program, or lets it wait while this process has no descriptors left: none is lost.
  ///
  /// - Parameters:
  ///   - request: The program to run.
  ///   - completion: Called once at its end, perhaps before this returns.
  /// - Returns: The program, to cancel it.
  @discardableResult
  package func startChild(
    _ request: ProcessRequest, completion: @escaping (ProcessEnd) -> Void
  ) -> ChildProcess {
    checkThread()
    return processes.start(request, completion: completion)
  }

  /// The code that executes the programs started from now on, instead of the system; nil for the
  /// system.
  package var processReplacement: (any ProcessReplacement)? {
    get { hasProcesses ? processes.replacement : nil }
    set { if newValue != nil || hasProcesses { processes.replacement = newValue } }
  }
}
