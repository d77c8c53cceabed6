internal import CFlowSystem
import Glibc

/// A program that runs, or waits to, and all that this process has of it. On its loop's thread.
///
/// It has ended when the program has and both its outputs are at their end, which may be later: what
/// it started may go on writing.
public final class ChildProcess {
  /// Told once, on the loop, of the end.
  typealias Completion = (Result<ProcessResult, FlowError>) -> Void

  let request: ProcessRequest
  private unowned let loop: EventLoop
  private var completion: Completion?
  /// Why it is to stop.
  private(set) var cancellation: FlowError?
  private var pid: Int32 = 0
  /// Set while `pid` is.
  private var group: OpaquePointer?
  private var hasExited = false
  private var exitWatch: DescriptorWatch?
  private var input: ProcessInput?
  private var outputs: [ProcessOutput] = []
  /// The end of its time and, once it was asked to stop, of the grace period.
  private var timer: Timer?
  /// The task that it is, if it is one. Unowned: the task is held until the end.
  unowned(unsafe) var task: ProcessTask?

  init(_ request: ProcessRequest, on loop: EventLoop, completion: @escaping Completion) {
    self.request = request
    self.loop = loop
    self.completion = completion
  }

  /// Whether it has yet to end.
  public var isPending: Bool { completion != nil }

  /// Asks the program, and what it started, to stop: SIGTERM to its process group, SIGKILL when the
  /// grace period is over. One that waits for its start is never started.
  ///
  /// - Parameter error: What it ends with.
  public func cancel(_ error: FlowError) {
    guard isPending, cancellation == nil else { return }
    cancellation = error
    guard pid != 0 else { return finish(.failure(error)) }
    // The leader isn't reaped before the end, so the group's number can't be another's by now.
    kill(-pid, SIGTERM)
    timer?.cancel()
    timer = loop.scheduleOutside(after: request.gracePeriod) { [unowned self] in
      timer = nil
      stop()
    }
    advance()
  }

  /// Takes over a program that was started.
  func begin(_ spawned: flowsystem_spawned) {
    pid = spawned.pid
    group = spawned.group
    if request.capturesOutput {
      outputs = [
        ProcessOutput(spawned.streams.1, self), ProcessOutput(spawned.streams.2, self),
      ]
    }
    if let bytes = request.stdin, spawned.streams.0 >= 0 {
      input = ProcessInput(spawned.streams.0, bytes)
    }
    let exit = ProcessExit(self)
    do throws(FlowError) {
      exitWatch = try loop.watch(spawned.pidfd, exit)
      for output in outputs { try output.watch(on: loop) }
      try input?.watch(on: loop)
    } catch {
      // Without its events there is no way to follow it.
      cancellation = error
      if exitWatch == nil { close(spawned.pidfd) }
      stop()
      reap()
      return
    }
    guard let seconds = request.timeout else { return }
    timer = loop.scheduleOutside(after: seconds) { [unowned self] in
      timer = nil
      cancel(.timeout(seconds: seconds))
    }
  }

  /// The program has exited; what it started may still write.
  fileprivate func exited() {
    guard !hasExited else { return }
    hasExited = true
    // Still a zombie, which keeps its number and its group's; but its descriptor has told all.
    endExitWatch()
    advance()
  }

  /// Goes on after something has come to its end.
  fileprivate func advance() {
    guard isPending, pid != 0, hasExited, outputs.allSatisfy(\.isAtEnd) else { return }
    // What is left of a cancelled group doesn't outlive it.
    if cancellation != nil { kill(-pid, SIGKILL) }
    reap()
  }

  /// Stops the whole group at once, and doesn't wait for what may still hold its outputs.
  private func stop() {
    guard pid != 0 else { return }
    kill(-pid, SIGKILL)
    for output in outputs {
      // What it has printed until now.
      output.read()
      output.end()
    }
    input?.end()
    advance()
  }

  /// Takes the status of the program, which has exited or is about to, and tells of the end.
  private func reap() {
    let result = letGo().map { status in
      let taken = outputs.map { $0.take() }
      return ProcessResult(
        rawStatus: status, outputs: taken.count == 2 ? (taken[0], taken[1]) : nil)
    }
    if let cancellation {
      finish(
        .failure(result.map { cancellation.carrying($0, hiding: loop.secrets) } ?? cancellation))
    } else if let result {
      finish(.success(result))
    } else {
      finish(
        .failure(
          FlowError(
            .error,
            "the status of \(request.commandText(hiding: loop.secrets)) is lost: something else in this process has "
              + "taken it, or ignores SIGCHLD")))
    }
  }

  /// Closes all that this process has of it, and takes its status; nil when something else did.
  private func letGo() -> Int32? {
    var status: Int32 = 0
    let isReaped = flowsystem_reap(pid, group, &status)
    pid = 0
    group = nil
    if !request.capturesOutput { flowsystem_lend_terminal(false) }
    for output in outputs { output.end() }
    input?.end()
    endExitWatch()
    timer?.cancel()
    timer = nil
    return isReaped ? status : nil
  }

  private func endExitWatch() {
    guard let watch = exitWatch else { return }
    watch.end()
    close(watch.descriptor)
    exitWatch = nil
  }

  /// Tells of the end, once.
  func finish(_ result: Result<ProcessResult, FlowError>) {
    let told = completion
    completion = nil
    outputs = []
    input = nil
    loop.processes.ended(self)
    told?(result)
  }

  /// Ends the program without telling anybody: its loop goes away.
  func abandon() {
    completion = nil
    guard pid != 0 else { return }
    kill(-pid, SIGKILL)
    _ = letGo()
    outputs = []
    input = nil
  }
}

/// Tells a child process of its exit. (The child holds the watch, so this must not hold the child.)
private final class ProcessExit: LoopJob {
  private weak var child: ChildProcess?

  init(_ child: ChildProcess) {
    self.child = child
  }

  func run() { child?.exited() }
}

/// One output of a program, collected as it comes.
final class ProcessOutput: LoopJob {
  private unowned let child: ChildProcess
  private var descriptor: Int32
  private var watch: DescriptorWatch?
  private var bytes: [UInt8] = []
  /// How much is read at a time, and how often before other descriptors get their turn.
  private static let chunk = 1 << 16
  private static let reads = 16

  init(_ descriptor: Int32, _ child: ChildProcess) {
    self.descriptor = descriptor
    self.child = child
  }

  var isAtEnd: Bool { descriptor < 0 }

  func watch(on loop: EventLoop) throws(FlowError) {
    watch = try loop.watch(descriptor, self)
  }

  func run() {
    read()
    if isAtEnd { child.advance() }
  }

  /// Takes what there is to read.
  func read() {
    withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 16) { buffer in
      for _ in 0..<Self.reads where !isAtEnd {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        if count > 0 {
          bytes.append(contentsOf: buffer[..<count])
        } else if count == 0 || errno != EAGAIN && errno != EINTR {
          end()
        } else {
          return
        }
      }
    }
  }

  /// Reads no more.
  func end() {
    watch?.end()
    watch = nil
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  func take() -> ByteString {
    defer { bytes = [] }
    return ByteString(bytes)
  }
}

/// The bytes for a program's standard input, written as it takes them.
final class ProcessInput: LoopJob {
  private var descriptor: Int32
  private let bytes: ByteString
  private var written = 0
  private var watch: DescriptorWatch?
  private static let chunk = 1 << 16
  private static let writes = 16

  init(_ descriptor: Int32, _ bytes: ByteString) {
    self.descriptor = descriptor
    self.bytes = bytes
  }

  func watch(on loop: EventLoop) throws(FlowError) {
    watch = try loop.watch(descriptor, writing: true, self)
  }

  func run() {
    for _ in 0..<Self.writes where descriptor >= 0 {
      if written == bytes.count { return end() }
      let count = bytes.withUnsafeBytes { all in
        let part = UnsafeBufferPointer(rebasing: all[written...].prefix(Self.chunk))
        return flowsystem_write_quietly(descriptor, part.baseAddress, part.count)
      }
      if count > 0 {
        written += count
      } else if errno == EAGAIN || errno == EINTR {
        return
      } else {
        // A program may read as much as it likes, and no more.
        return end()
      }
    }
  }

  /// Writes no more: the program sees the end of its input.
  func end() {
    watch?.end()
    watch = nil
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }
}
