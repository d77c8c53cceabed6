internal import CFlowSystem
import Glibc

/// A program that runs, or waits to, and everything that this process has of it. On its loop's
/// thread.
///
/// It has ended when the program has and both its outputs are at their end. That may be later: the
/// program's own child processes may continue to write.
public final class ChildProcess {
  /// Called once, on the loop, at the end.
  typealias Completion = (ProcessEnd) -> Void

  /// The program and its arguments.
  package let request: ProcessRequest
  private unowned let loop: EventLoop
  private var completion: Completion?
  /// The reason for its stop.
  private(set) var cancellation: (any Error)?
  private var pid: Int32 = 0
  /// Set while `pid` is.
  private var group: OpaquePointer?
  private var hasExited = false
  private var exitWatch: DescriptorWatch?
  private var input: ProcessInput?
  private var outputs: [ProcessOutput] = []
  /// The timer of its time limit and, after a stop, of the grace period.
  private var timer: Timer?
  /// The object that has started it, if it is known. Unowned: that object lives until the end.
  package unowned(unsafe) var starter: AnyObject?

  init(_ request: ProcessRequest, on loop: EventLoop, completion: @escaping Completion) {
    self.request = request
    self.loop = loop
    self.completion = completion
  }

  /// Whether it hasn't ended yet.
  public var isPending: Bool { completion != nil }

  /// Stops the program and its child processes: SIGTERM to its process group, and SIGKILL when the
  /// grace period is over. A program that waits for its start is never started.
  ///
  /// - Parameter reason: The reason, for its `ProcessEnd`.
  public func cancel(because reason: any Error) {
    guard isPending, cancellation == nil else { return }
    cancellation = reason
    guard pid != 0 else { return finish(.stopped(reason, nil)) }
    // The leader isn't reaped before the end, so the group's number can't belong to another group
    // yet.
    kill(-pid, SIGTERM)
    timer?.cancel()
    timer = loop.scheduleOutside(after: request.gracePeriod) { [unowned self] in
      timer = nil
      stop()
    }
    advance()
  }

  /// Begins to follow a program that was started.
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
    do throws(SystemError) {
      exitWatch = try loop.watch(spawned.pidfd, exit)
      for output in outputs { try output.watch(on: loop) }
      try input?.watch(on: loop)
    } catch {
      // Without its events the program can't be followed.
      cancellation = error
      if exitWatch == nil { close(spawned.pidfd) }
      stop()
      reap()
      return
    }
    guard let seconds = request.timeout else { return }
    timer = loop.scheduleOutside(after: seconds) { [unowned self] in
      timer = nil
      cancel(because: ProcessTimeout(seconds: seconds))
    }
  }

  /// The program has exited; its child processes may still write.
  fileprivate func exited() {
    guard !hasExited else { return }
    hasExited = true
    // Still a zombie, which keeps its number and its group's; its descriptor will report nothing
    // more.
    endExitWatch()
    advance()
  }

  /// Continues after the program or one of its streams has ended.
  fileprivate func advance() {
    guard isPending, pid != 0, hasExited, outputs.allSatisfy(\.isAtEnd) else { return }
    // The remaining processes of a cancelled group end with it.
    if cancellation != nil { kill(-pid, SIGKILL) }
    reap()
  }

  /// Stops the whole group at once, without waiting for processes that may still hold its outputs.
  private func stop() {
    guard pid != 0 else { return }
    kill(-pid, SIGKILL)
    for output in outputs {
      // The output until now.
      output.read()
      output.end()
    }
    input?.end()
    advance()
  }

  /// Takes the status of the program, which has exited or is about to, and reports the end.
  private func reap() {
    let result = takeStatus().map { status in
      let taken = outputs.map { $0.takeBytes() }
      return ProcessResult(
        rawStatus: status, outputs: taken.count == 2 ? (taken[0], taken[1]) : nil)
    }
    if let cancellation {
      finish(.stopped(cancellation, result))
    } else {
      finish(result.map { .exited($0) } ?? .lost)
    }
  }

  /// Closes all descriptors of the program, and takes its status; nil when other code has taken it.
  private func takeStatus() -> Int32? {
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

  /// Reports the end, once.
  func finish(_ end: ProcessEnd) {
    let report = completion
    completion = nil
    outputs = []
    input = nil
    loop.processes.ended(self)
    report?(end)
  }

  /// Ends the program without reporting it, because its loop is being released.
  func abandon() {
    completion = nil
    guard pid != 0 else { return }
    kill(-pid, SIGKILL)
    _ = takeStatus()
    outputs = []
    input = nil
  }
}

/// Notifies a child process of its exit. (The child holds the watch, so this must not hold the
/// child.)
private final class ProcessExit: LoopJob {
  private weak var child: ChildProcess?

  init(_ child: ChildProcess) {
    self.child = child
  }

  func run() { child?.exited() }
}

/// One output of a program, collected as it arrives.
final class ProcessOutput: LoopJob {
  private unowned let child: ChildProcess
  private var descriptor: Int32
  private var watch: DescriptorWatch?
  private var bytes: [UInt8] = []
  /// How much is read at a time, and how often, before other descriptors get their turn.
  private static let chunk = 1 << 16
  private static let reads = 16

  init(_ descriptor: Int32, _ child: ChildProcess) {
    self.descriptor = descriptor
    self.child = child
  }

  var isAtEnd: Bool { descriptor < 0 }

  func watch(on loop: EventLoop) throws(SystemError) {
    watch = try loop.watch(descriptor, self)
  }

  func run() {
    read()
    if isAtEnd { child.advance() }
  }

  /// Reads the available output.
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

  /// Stops reading.
  func end() {
    watch?.end()
    watch = nil
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  func takeBytes() -> ByteString {
    defer { bytes = [] }
    return ByteString(bytes)
  }
}

/// The bytes for a program's standard input, written as the program reads them.
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

  func watch(on loop: EventLoop) throws(SystemError) {
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
        // A program may stop reading at any time.
        return end()
      }
    }
  }

  /// Stops writing: the program sees the end of its input.
  func end() {
    watch?.end()
    watch = nil
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }
}
