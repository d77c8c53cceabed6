internal import FlowSystem

/// A program that runs, or waits to, and everything that this process has of it. On its loop's
/// thread.
///
/// It has ended when the program has and both its outputs are at their end. That may be later: the
/// program's own child processes may continue to write.
package final class ChildProcess: ProcessLineSource {
  /// Called once, on the loop, at the end.
  typealias Completion = (ProcessEnd) -> Void

  /// The program and its arguments.
  package let request: ProcessRequest
  unowned let loop: FlowEventLoop
  private var completion: Completion?
  /// The reason for its stop.
  private(set) var cancellation: (any Error)?
  /// Whether it was asked to end, and hasn't ended yet.
  var isEnding: Bool { isPending && cancellation != nil }
  private var pid: Int32 = 0
  /// The argument of kill that reaches it.
  private var target: Int32 = 0
  /// The number of its process once it was started, also after its end.
  package private(set) var processNumber: Int32?
  /// Set while `pid` is.
  private var group: OpaquePointer?
  /// The processes that it has started, once it was stopped.
  private var tree: OpaquePointer?
  private var treeWatch: DescriptorWatch?
  var hasExited = false
  private var exitDescriptor: Int32 = -1
  private var exitWatch: DescriptorWatch?
  /// Set for bytes and a pipe.
  private(set) var input: ProcessInput?
  /// The named pipe that is its input, until it has been started; negative otherwise.
  private(set) var namedPipe: Int32 = -1
  private var writerWatch: DescriptorWatch?
  var outputs: [ProcessOutput] = []
  private var lines: ProcessLines?
  /// Set while nothing is watched, because readers of its lines don't take them.
  private var isPaused = false
  /// Whether code waits for its end; set by its starter.
  package var isEndAwaited: (() -> Bool)?
  /// Set once all is over and only the last lines have to be taken: a reader that leaves them makes them
  /// part of the result.
  private var awaitsReaders = false
  /// The timer of its time limit and, after a stop, of the grace period.
  var timer: LoopTimer?
  /// The code that executes it instead of the system; set at its start.
  var replacement: (any ProcessReplacement)?
  /// The status with which that code has ended it.
  var replacedStatus: Int32?
  /// The object that has started it, if it is known. Unowned: that object lives until the end.
  package unowned(unsafe) var starter: AnyObject?

  init(_ request: ProcessRequest, on loop: FlowEventLoop, completion: @escaping Completion) {
    self.request = request
    self.loop = loop
    self.completion = completion
    switch request.input {
    case .bytes(let bytes): input = ProcessInput(bytes, on: loop)
    case .pipe: input = ProcessInput(nil, on: loop)
    case .nothing, .inherited, .file: break
    }
  }

  /// Whether it hasn't ended yet.
  package var isPending: Bool { completion != nil }

  /// Stops the program and all that it has started: SIGTERM, and SIGKILL when the grace period is over. A program that
  /// waits for its start is never started.
  ///
  /// - Parameter reason: The reason, for its `ProcessEnd`.
  package func cancel(because reason: any Error) {
    guard isPending, cancellation == nil else { return }
    cancellation = reason
    if let replacement { return replacement.cancel(self, because: reason) }
    guard pid != 0 else { return finish(.stopped(reason, nil)) }
    // The leader isn't reaped before the end, so the group's number can't belong to another group
    // yet.
    tree = flowsystem_end_program(group, pid, target)
    // Its last words are read, whether a reader takes them or not.
    lines?.lift()
    resume()
    watchTree()
    let half = request.gracePeriod / 2
    wait(half) { [unowned self] in
      // Those whose parents haven't told them.
      flowsystem_tell_tree(tree, true)
      wait(half) { [unowned self] in stop() }
    }
    advance()
  }

  /// Sets its timer.
  private func wait(_ duration: Duration, then: @escaping () -> Void) {
    timer?.cancel()
    timer = loop.scheduleOutside(after: duration) { [unowned self] in
      timer = nil
      then()
    }
  }

  /// Watches the processes that it has started. A failure only means that nobody waits for them.
  private func watchTree() {
    let descriptor = flowsystem_tree_descriptor(tree)
    guard descriptor >= 0, flowsystem_tell_tree(tree, false) > 0,
      let watch = try? loop.watch(descriptor, ProcessChange(self))
    else { return endTree() }
    treeWatch = watch
  }

  /// Forgets the processes that it has started.
  private func endTree() {
    treeWatch?.end()
    treeWatch = nil
    flowsystem_clear_tree(tree)
    tree = nil
  }

  /// Calls `then` at once or, if its input is a named pipe, when that has something to read: a program that reads it
  /// before anybody has opened it for writing gets the end of the input. Its time limit counts from here.
  func awaitWriter(then: @escaping (ChildProcess) -> Void) {
    var status = stat()
    guard case .file(let path) = request.input, path.withCString({ stat($0, &status) }) == 0,
      status.st_mode & S_IFMT == S_IFIFO
    else { return then(self) }
    do throws(SystemError) {
      namedPipe = try ProcessRequest.open(path, writing: false)
      writerWatch = try loop.watch(
        namedPipe,
        ClosureJob { [weak self] in
          guard let self else { return }
          writerWatch?.end()
          writerWatch = nil
          then(self)
        })
    } catch {
      return finish(.failed(error))
    }
    limitTime()
  }

  /// Begins its time limit, unless that was done.
  private func limitTime() {
    guard timer == nil, let limit = request.timeout else { return }
    wait(limit) { [unowned self] in cancel(because: ProcessTimeout(limit: limit)) }
  }

  private func closeNamedPipe() {
    writerWatch?.end()
    writerWatch = nil
    if namedPipe >= 0 { close(namedPipe) }
    namedPipe = -1
  }

  var memoryMeter: (any MemoryMeter)? { loop.memoryMeter }

  /// Stops the program because its output doesn't fit into memory. The output is dropped.
  func stopForMemory(limit: Int) {
    for output in outputs { output.drop() }
    cancel(because: ProcessOutputLimit(limit: limit))
  }

  /// Begins to follow a program that was started.
  func begin(_ spawned: flowsystem_spawned) {
    closeNamedPipe()
    pid = spawned.pid
    target = spawned.target
    processNumber = pid
    group = spawned.group
    exitDescriptor = spawned.pidfd
    let tee = request.makeTee()
    for (descriptor, stream) in [
      (spawned.streams.1, ProcessStream.stdout), (spawned.streams.2, ProcessStream.stderr),
    ] where descriptor >= 0 {
      outputs.append(ProcessOutput(descriptor, stream, self, tee))
    }
    do throws(SystemError) {
      // First, because the input is closed with the program once it has its descriptor.
      if spawned.streams.0 >= 0 { try input?.begin(spawned.streams.0) }
      try watch()
    } catch {
      lose(error)
      return
    }
    limitTime()
  }

  /// Watches the program and its outputs.
  private func watch() throws(SystemError) {
    if exitWatch == nil, !hasExited {
      exitWatch = try loop.watch(exitDescriptor, ProcessChange(self, isExit: true))
    }
    for output in outputs { try output.watch(on: loop) }
  }

  /// Ends a program that can't be followed without its events.
  private func lose(_ error: SystemError) {
    if cancellation == nil { cancellation = error }
    stop()
    // Without its exit watch its end isn't noticed.
    if isPending, pid != 0, exitWatch == nil, !hasExited { reap() }
  }

  // MARK: The terminal

  /// Whether it is in the process group of this process, which has the terminal.
  var sharesGroup: Bool { target > 0 }

  /// The signal that has stopped it since the last look; nil for none.
  var stopSignal: Int32? {
    guard pid != 0, !sharesGroup, !hasExited else { return nil }
    let signal = flowsystem_stopped_by(pid)
    return signal == 0 ? nil : signal
  }

  /// Lets it continue with the terminal; false if it can't have that.
  func takeTerminal() -> Bool { pid != 0 && flowsystem_give_terminal(pid) }

  // MARK: Lines

  /// Returns the lines of its outputs, which are shared by all readers.
  package func makeLines() -> ProcessLines {
    if let lines { return lines }
    let made = ProcessLines(of: self)
    lines = made
    return made
  }

  /// The lines, while there is a reader.
  var openLines: ProcessLines? { lines.flatMap { $0.isOpen ? $0 : nil } }

  /// Called when the first reader of the lines has come, or the last one is gone.
  func readersChanged() {
    guard isPending, let lines else { return }
    if lines.isOpen {
      for output in outputs { output.split(into: lines) }
      pauseIfFull()
    } else {
      let rest = lines.takeAll()
      for output in outputs { output.collect(rest) }
      linesWereTaken()
    }
  }

  /// Continues after lines were taken: with the program, or with its end.
  func linesWereTaken() {
    resume()
    if awaitsReaders { advance() }
  }

  /// Whether a script waits for it: for its end, or until it has read its input. The script may be the one
  /// that has to take the lines, so the program doesn't wait for that.
  private var isAwaited: Bool { input?.hasWriters == true || isEndAwaited?() == true }

  /// Whether it has to wait until lines were taken.
  var isHeldBack: Bool { openLines?.isFull == true && !isAwaited }

  /// Continues if code waits for its end now; returns whether it still waits for readers.
  func continueIfAwaited() -> Bool {
    if waitsForReaders, isPending, isAwaited { linesWereTaken() }
    return waitsForReaders && isPending
  }

  /// Stops watching everything of the program while its readers have enough: it waits for them then,
  /// and nothing outside of the loop is pending.
  func pauseIfFull() {
    guard !isPaused, cancellation == nil, isHeldBack else { return }
    isPaused = true
    loop.processes.holdsBack(self)
    for output in outputs { output.pause() }
    input?.pause()
    endExitWatch()
  }

  /// Continues after a pause.
  func resume() {
    guard isPaused, !isHeldBack else { return }
    isPaused = false
    guard pid != 0 else { return }
    do throws(SystemError) {
      try watch()
      try input?.resume()
    } catch {
      lose(error)
    }
  }

  /// Whether it waits for the readers of its lines, before it can continue or end.
  var waitsForReaders: Bool { isPaused || awaitsReaders }

  /// Continues although its lines aren't taken.
  func lift() {
    lines?.lift()
    linesWereTaken()
  }

  // MARK: The end

  /// The program has exited; its child processes may still write.
  fileprivate func exited() {
    guard !hasExited else { return }
    hasExited = true
    // Still a zombie, which keeps its number and its group's; its descriptor will report nothing
    // more.
    endExitWatch()
    treeChanged()
  }

  /// A process that it has started has ended, or the program itself.
  fileprivate func treeChanged() {
    if tree != nil, flowsystem_tell_tree(tree, false) == 0 { endTree() }
    advance()
  }

  /// Continues after the program, one of its streams, or all that it had started when it was stopped has ended.
  func advance() {
    guard isPending, pid != 0 || replacedStatus != nil, hasExited, tree == nil,
      outputs.allSatisfy(\.isAtEnd)
    else { return }
    if cancellation == nil, lines?.delaysEnd == true, !isAwaited {
      awaitsReaders = true
      loop.processes.holdsBack(self)
      timer?.cancel()
      timer = nil
      return
    }
    if let replacedStatus { return finish(.exited(makeResult(replacedStatus))) }
    // The remaining processes of a cancelled group end with it.
    if cancellation != nil { kill(target, SIGKILL) }
    reap()
  }

  /// Kills all of it at once, without waiting for processes that may still hold its outputs.
  private func stop() {
    guard pid != 0 else { return }
    flowsystem_kill_tree(tree)
    endTree()
    let problem = kill(target, SIGKILL) == 0 ? 0 : errno
    for output in outputs {
      // The output until now.
      output.read(whole: true)
      output.end()
    }
    input?.end()
    advance()
    guard isPending else { return }
    // The program belongs to another user now, or waits within the system: nobody can end it.
    wait(.seconds(1)) { [unowned self] in leave(problem) }
  }

  /// Whether it has ended without the program, which can't be ended.
  package private(set) var isOutOfReach = false

  /// Ends without the program, which can't be ended. Once it has ended by itself, it stays a zombie of this process.
  private func leave(_ problem: Int32) {
    guard pid != 0, let cancellation else { return }
    isOutOfReach = true
    let error = ProcessOutOfReach(
      pid: pid, problem: problem == 0 ? "it waits within the system" : systemMessage(problem),
      reason: cancellation)
    releaseGroup()
    forget()
    finish(.stopped(error, makeResult(-SIGKILL)))
  }

  /// Takes the status of the program, which has exited or is about to, and reports the end.
  private func reap() {
    let result = takeStatus().map { makeResult($0) }
    if let cancellation {
      finish(.stopped(cancellation, result))
    } else {
      finish(result.map { .exited($0) } ?? .lost)
    }
  }

  /// The result of a program with this status, and with its output.
  private func makeResult(_ status: Int32) -> ProcessResult {
    let ending = outputs.last?.ending ?? ""
    let taken = request.capturesOutput ? outputs.map { $0.takeBytes() } : []
    return ProcessResult(
      rawStatus: status, stdout: taken.count == 2 ? taken[0].bytes : nil,
      stderr: taken.last?.bytes, stderrEnd: ending, held: taken.compactMap(\.held))
  }

  /// Forgets the program, and takes its status; nil when other code has taken it.
  private func takeStatus() -> Int32? {
    var status: Int32 = 0
    // Another program may have its place afterwards.
    endTree()
    let isReaped = flowsystem_reap(pid, group, &status)
    forget()
    return isReaped ? status : nil
  }

  private func releaseGroup() {
    endTree()
    flowsystem_release_group(group)
  }

  /// Closes all descriptors of the program.
  private func forget() {
    pid = 0
    group = nil
    if request.sharesOutput { flowsystem_lend_terminal(false) }
    for output in outputs { output.end() }
    input?.end()
    endExitWatch()
    if exitDescriptor >= 0 { close(exitDescriptor) }
    exitDescriptor = -1
    timer?.cancel()
    timer = nil
  }

  private func endExitWatch() {
    exitWatch?.end()
    exitWatch = nil
  }

  /// Reports the end, once.
  func finish(_ end: ProcessEnd) {
    let report = completion
    completion = nil
    replacement = nil
    closeNamedPipe()
    timer?.cancel()
    timer = nil
    outputs = []
    input?.end()
    lines?.end()
    loop.processes.ended(self, end)
    report?(end)
  }

  /// Ends the program without reporting it, because its loop is being released.
  func abandon() {
    completion = nil
    replacement = nil
    closeNamedPipe()
    timer?.cancel()
    timer = nil
    input?.abandon()
    guard pid != 0 else { return }
    if tree == nil { tree = flowsystem_find_tree(group, pid, target) }
    flowsystem_kill_tree(tree)
    if kill(target, SIGKILL) == 0 {
      _ = takeStatus()
    } else {
      releaseGroup()
      forget()
    }
    outputs = []
  }
}

/// Notifies a child process of its exit, or of the exit of a program that it has started. (The child holds the
/// watch, so this must not hold the child.)
private final class ProcessChange: LoopJob {
  private weak var child: ChildProcess?
  private let isExit: Bool

  init(_ child: ChildProcess, isExit: Bool = false) {
    self.child = child
    self.isExit = isExit
  }

  func run() { isExit ? child?.exited() : child?.treeChanged() }
}
