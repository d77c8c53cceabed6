internal import CFlowSystem
import Glibc

/// The programs of a loop: those that run, and those that wait until there is room for them.
final class ProcessTable {
  private unowned let loop: EventLoop
  private var running: [ObjectIdentifier: ChildProcess] = [:]
  private var waiting: [ChildProcess] = []
  /// The first of `waiting` that wasn't taken yet.
  private var next = 0
  private var isStarting = false

  init(_ loop: EventLoop) {
    self.loop = loop
  }

  deinit { killAll() }

  /// Ends all programs at once, without telling anybody.
  func killAll() {
    for child in waiting[next...] { child.abandon() }
    for child in running.values { child.abandon() }
    waiting = []
    next = 0
    running = [:]
  }

  /// Asks all programs of an owner to stop, or those that neither an op nor a task has started.
  func cancelAll(of owner: ObjectIdentifier, isLoose: Bool = false, _ error: FlowError) {
    let children = Array(waiting[next...]) + running.values
    for child in children where child.request.owner == owner {
      if !isLoose || child.task.map({ $0.owner == nil }) == true { child.cancel(error) }
    }
  }

  func start(
    _ request: ProcessRequest, completion: @escaping ChildProcess.Completion
  ) -> ChildProcess {
    let child = ChildProcess(request, on: loop, completion: completion)
    if loop.isShutDown {
      child.finish(
        .failure(.usage("a program was started on an event loop that was shut down")))
    } else if let problem = request.problem {
      child.finish(.failure(.usage(problem)))
    } else {
      waiting.append(child)
      startWaiting()
    }
    return child
  }

  /// Called when a program has ended, or one that waits isn't to be started any more.
  func ended(_ child: ChildProcess) {
    guard running.removeValue(forKey: ObjectIdentifier(child)) != nil, next < waiting.count else {
      return
    }
    startWaiting()
  }

  /// Starts programs, first come first served, until there is no room.
  private func startWaiting() {
    // A start that fails tells of it at once, which may ask for the next.
    guard !isStarting else { return }
    isStarting = true
    defer { isStarting = false }
    while next < waiting.count {
      let child = waiting[next]
      if child.isPending, !start(child) { return }
      next += 1
      if next == waiting.count || next >= 1024 {
        waiting.removeFirst(next)
        next = 0
      }
    }
  }

  /// Starts one, or tells it why that can't be; false when it has to wait.
  private func start(_ child: ChildProcess) -> Bool {
    var spawned = flowsystem_spawned()
    // The last descriptors are for files of the script; the one program that runs may have them.
    let problem = child.request.spawn(&spawned, keepsReserve: !running.isEmpty)
    switch problem {
    case 0:
      running[ObjectIdentifier(child)] = child
      child.begin(spawned)
    case EMFILE, ENFILE, EAGAIN, ENOMEM:
      // One that ends makes room. Without any that could, waiting would be for good.
      if !running.isEmpty { return false }
      fallthrough
    default: child.finish(.failure(child.request.failure(problem)))
    }
    return true
  }
}

extension ProcessRequest {
  /// Starts the program; answers 0 or an errno.
  func spawn(_ spawned: inout flowsystem_spawned, keepsReserve: Bool) -> Int32 {
    let words = CStrings(argv)
    let variables = environment.isEmpty ? nil : CStrings(mergedEnvironment())
    let folder = cwd.map { CStrings([$0]) }
    // A list that ends too early would be another command.
    for list in [words, variables, folder] where list?.isComplete == false { return ENOMEM }
    var request = flowsystem_spawn_request()
    request.argv = UnsafePointer(words.pointers)
    request.environment = variables.map { UnsafePointer($0.pointers) }
    request.cwd = folder.flatMap { $0.pointers[0] }.map { UnsafePointer($0) }
    request.stdin_is_piped = stdin != nil
    request.outputs_are_piped = capturesOutput
    request.keeps_reserve = keepsReserve
    return withExtendedLifetime((words, variables, folder)) {
      flowsystem_spawn(&request, &spawned)
    }
  }

  private func mergedEnvironment() -> [ByteString] {
    var merged: [ByteString] = []
    var entry = environ
    while let text = entry.pointee {
      let bytes = Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
      let name = ByteString(Array(bytes.prefix { $0 != UInt8(ascii: "=") }))
      if environment[name] == nil { merged.append(ByteString(bytes)) }
      entry += 1
    }
    for (name, value) in environment {
      if let value { merged.append("\(name)=\(value)") }
    }
    return merged
  }

  /// Why the program couldn't be started. The system has one number for several reasons.
  func failure(_ number: Int32) -> FlowError {
    let program = argv[0]
    var reason = systemMessage(number)
    if let cwd, let folder = Self.folderProblem(cwd) {
      return FlowError(
        .error, "can't run '\(program)' in '\(cwd)': \(systemMessage(folder))", code: Int64(folder))
    }
    let isPath = program.bytes.contains(UInt8(ascii: "/"))
    switch number {
    case ENOENT where isPath && cwd == nil && program.withCString { access($0, F_OK) } == 0:
      reason = "the interpreter in its first line doesn't exist"
    case ENOENT: reason = isPath ? "no such program" : "no such program on the PATH"
    case EACCES: reason = "not an executable program (\(reason))"
    case ENOEXEC: reason = "not a program of this system, nor a script with a first line '#!'"
    default: break
    }
    return FlowError(.error, "can't run '\(program)': \(reason)", code: Int64(number))
  }

  private static func folderProblem(_ path: ByteString) -> Int32? {
    var status = stat()
    guard path.withCString({ stat($0, &status) }) == 0 else { return errno }
    if status.st_mode & S_IFMT != S_IFDIR { return ENOTDIR }
    return path.withCString { access($0, X_OK) } == 0 ? nil : errno
  }
}

/// Copies of strings in the form in which C takes a list of them.
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

extension EventLoop {
  /// Has the programs of all loops end with this process, however that ends: when it exits, and when
  /// SIGHUP, SIGINT, SIGQUIT, SIGPIPE or SIGTERM end it. Each has a process group of its own, which a
  /// terminal's Ctrl-C doesn't reach.
  ///
  /// Handlers are installed with the first program, and only for signals whose action is the default
  /// one then: a program that handles them itself cancels its programs itself.
  public static func endProgramsWithProcess() { flowsystem_end_programs_with_process() }

  /// Ends the programs of all loops now, with all that they started: they are asked to stop and, after
  /// a second, killed. Nothing is told of it before their loops go on.
  public static func endPrograms() { flowsystem_end_programs() }

  /// Kills all programs that run on this loop, with all that they started, for a process that is about
  /// to end: they would outlive it. Nothing is told of it, so their ops never end.
  public func killProcesses() {
    checkThread()
    if hasProcesses { processes.killAll() }
  }

  /// Asks all programs whose request names this owner to stop.
  public func cancelProcesses(of owner: ObjectIdentifier) {
    checkThread()
    guard hasProcesses else { return }
    processes.cancelAll(of: owner, .cancelled(reason: "the host of the script was closed"))
  }

  /// The same of those that were started as tasks, and neither by an op nor by another task.
  package func cancelLooseProcesses(of owner: ObjectIdentifier) {
    checkThread()
    guard hasProcesses else { return }
    processes.cancelAll(
      of: owner, isLoose: true, .cancelled(reason: "the host of the script was closed"))
  }

  /// Starts a program, or has it wait while this process has no descriptors left: none is lost.
  ///
  /// - Parameters:
  ///   - request: What to run.
  ///   - completion: Told once of the end, perhaps before this returns: the result, whatever its
  ///     status, or why the program couldn't be started or was cancelled.
  /// - Returns: The program, to cancel it.
  @discardableResult
  public func startProcess(
    _ request: ProcessRequest,
    completion: @escaping (Result<ProcessResult, FlowError>) -> Void
  ) -> ChildProcess {
    checkThread()
    hasProcesses = true
    return processes.start(request, completion: completion)
  }
}
