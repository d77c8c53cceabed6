import FlowLoop
import Glibc
import Testing

@Suite("Child processes", .serialized)
struct ProcessTests {
  private enum Reason: Error {
    case first, second
  }

  private final class Box {
    var end: ProcessEnd?
    /// The result of a program that ended by itself.
    var result: ProcessResult? {
      if case .exited(let result)? = end { result } else { nil }
    }
    /// The reason why it was stopped.
    var reason: Reason? {
      if case .stopped(let reason, _)? = end { reason as? Reason } else { nil }
    }
  }

  private func start(_ loop: FlowEventLoop, _ request: ProcessRequest) -> (ChildProcess, Box) {
    let box = Box()
    let child = loop.startChild(request) { box.end = $0 }
    return (child, box)
  }

  private func shell(_ text: ByteString) -> ProcessRequest { ProcessRequest(["sh", "-c", text]) }

  @Test("A hundred megabytes pass in both directions")
  func aHundredMegabytesPassBothWays() {
    let loop = makeLoop()
    let bytes = ByteString([UInt8](repeating: 120, count: 100 << 20))
    let (_, box) = start(loop, ProcessRequest(["cat"], stdin: bytes))
    loop.runUntilIdle()
    #expect(box.result?.stdout == bytes)
    #expect(box.result?.status == 0)
  }

  @Test("Cancelling stops the whole process group")
  func cancellingStopsTheWholeGroup() throws {
    var template = Array("/tmp/flowlua-test-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    let path = String(cString: template.map { $0 })
    defer {
      close(file)
      unlink(path)
    }
    do {
      let loop = makeLoop()
      var request = shell(ByteString("sleep 100 & echo $! > \(path); wait"))
      // It ends because it is asked to.
      request.gracePeriod = .seconds(1000)
      let (child, box) = start(loop, request)
      var text = [UInt8](repeating: 0, count: 32)
      var count = 0
      while count <= 0 {
        usleep(1000)
        count = pread(file, &text, text.count, 0)
      }
      let started = String(decoding: text[..<(count - 1)], as: UTF8.self)
      let pid = try #require(Int32(started))
      let begun = SystemClock().now()
      child.cancel(because: Reason.first)
      child.cancel(because: Reason.second)
      loop.runUntilIdle()
      #expect(box.reason == .first)
      #expect(SystemClock().now() - begun < 100_000_000_000)
      expectGone(pid)
    }
  }

  /// A process that was sent a signal dies when the system gets to it. Nobody may reap it here, so being a
  /// zombie is enough.
  private func expectGone(_ pid: Int32) {
    for _ in 0..<5000 {
      let file = open("/proc/\(pid)/stat", O_RDONLY)
      guard file >= 0 else { return }
      defer { close(file) }
      var text = [UInt8](repeating: 0, count: 256)
      let count = max(0, read(file, &text, text.count))
      if String(decoding: text[..<count], as: UTF8.self).contains(") Z ") { return }
      usleep(1000)
    }
    Issue.record("process \(pid) is still there")
  }

  @Test("A program that ignores SIGTERM is killed after the grace period")
  func whatIgnoresToBeAskedIsKilledAfterTheGracePeriod() {
    let path = "/tmp/flowlua-test-\(getpid())-ready"
    for loop in [makeLoop(), makeTimedLoop()] {
      var request = shell(
        ByteString("trap '' TERM; : > \(path); while :; do sleep 100; done"))
      request.gracePeriod = .seconds(0.05)
      let (child, box) = start(loop, request)
      while unlink(path) != 0 { usleep(1000) }
      while loop.turn(mayBlock: false) == .worked {}
      let begun = SystemClock().now()
      child.cancel(because: Reason.first)
      loop.runUntilIdle()
      let took = SystemClock().now() - begun
      #expect(box.reason == .first)
      #expect(took >= 49_000_000 && took < 60_000_000_000)
    }
  }

  @Test("A descendant that outlives its program may keep writing")
  func whatAProgramLeavesBehindMayGoOnWriting() {
    let loop = makeLoop()
    let (_, box) = start(loop, shell("(sleep 0.03; echo late) & echo early"))
    loop.runUntilIdle()
    #expect(box.result?.stdout == "early\nlate\n")
  }

  @Test("A program doesn't inherit ignored signals")
  func signalsIgnoredHereAreNotIgnoredThere() {
    let loop = makeLoop()
    signal(SIGPIPE, SIG_IGN)
    signal(SIGHUP, SIG_IGN)
    let (_, box) = start(
      loop, ProcessRequest(["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]))
    loop.runUntilIdle()
    signal(SIGPIPE, SIG_DFL)
    signal(SIGHUP, SIG_DFL)
    #expect(box.result?.stdout == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n")
  }

  @Test("Unread input raises no signal")
  func inputThatNobodyReadsRaisesNoSignal() {
    let loop = makeLoop()
    let bytes = ByteString([UInt8](repeating: 1, count: 1 << 20))
    let (_, box) = start(loop, ProcessRequest(["true"], stdin: bytes))
    loop.runUntilIdle()
    #expect(box.result?.status == 0)
  }

  /// With few descriptors all of many programs run, each once; without any, there is an error.
  @Test("Programs wait for descriptors")
  func programsWaitForDescriptors() async {
    await #expect(processExitsWith: .success) {
      // All is released before the exit, where the leak checker looks.
      func status() -> Int32 {
        limitDescriptors(toOpen: 58)
        let loop = makeTimedLoop()
        var ended = 0
        var outputs: Set<ByteString> = []
        for number in 0..<300 {
          loop.startChild(ProcessRequest(["echo", "\(number)"])) { end in
            ended += 1
            if case .exited(let result) = end { outputs.insert(result.stdout) }
          }
        }
        // Some are left for the script's own files.
        let spare = open("/dev/null", O_RDONLY)
        guard spare >= 0 else { return 2 }
        loop.runUntilIdle()
        guard ended == 300, outputs.count == 300 else { return 3 }
        var taken: [Int32] = []
        while case let descriptor = open("/dev/null", O_RDONLY), descriptor >= 0 {
          taken.append(descriptor)
        }
        var problem: Int32?
        loop.startChild(ProcessRequest(["true"])) { end in
          if case .failed(let error) = end { problem = error.code }
        }
        for descriptor in taken { close(descriptor) }
        guard problem == EMFILE else { return 4 }
        return 0
      }
      exit(status())
    }
  }

  @Test("A waiting program can be cancelled before it starts")
  func whatWaitsCanBeCancelledWithoutEverStarting() async {
    await #expect(processExitsWith: .success) {
      func status() -> Int32 {
        limitDescriptors(toOpen: 34)
        let loop = makeTimedLoop()
        var ended = 0
        var unstarted = 0
        let children = (0..<50).map { _ in
          loop.startChild(ProcessRequest(["sleep", "100"])) { end in
            guard case .stopped(_, let result) = end else { return }
            ended += 1
            if result == nil { unstarted += 1 }
          }
        }
        for child in children.reversed() { child.cancel(because: Reason.first) }
        loop.runUntilIdle()
        return ended == 50 && unstarted > 0 && wait(nil) == -1 ? 0 : 1
      }
      exit(status())
    }
  }

  /// In a process of its own, where nobody else has children or opens files.
  @Test("Programs leak no descriptor and no process")
  func nothingIsLeftBehind() async {
    await #expect(processExitsWith: .success) {
      do {
        let loop = makeTimedLoop()
        let requests = [
          ProcessRequest(["true"]), ProcessRequest(["no-such-program"], stdin: "x"),
          ProcessRequest(["cat"], stdin: "x"), ProcessRequest(["true"], cwd: "/no/such"),
          ProcessRequest(["sh", "-c", "kill -9 $$"]), ProcessRequest(["a\0b"]),
        ]
        let before = openDescriptors()
        for request in requests { loop.startChild(request) { _ in } }
        let late = loop.startChild(ProcessRequest(["sleep", "100"], stdin: "x")) { _ in }
        late.cancel(because: Reason.first)
        loop.runUntilIdle()
        guard waitpid(-1, nil, WNOHANG) == -1, errno == ECHILD else { exit(2) }
        guard openDescriptors() == before else { exit(3) }
        for _ in 0..<5 { loop.startChild(ProcessRequest(["sleep", "100"])) { _ in } }
        loop.killProcesses()
        guard loop.turn(mayBlock: false) == .idle else { exit(4) }
        loop.startChild(ProcessRequest(["sleep", "100"], stdin: "x")) { _ in }
      }
      // A loop that goes away takes its programs with it.
      guard waitpid(-1, nil, WNOHANG) == -1, errno == ECHILD else { exit(5) }
      exit(0)
    }
  }
}

/// The descriptors of pipes and processes that are open in this process. Others come and go by
/// themselves: Dispatch opens a timer when it likes.
private func openDescriptors() -> [Int32] {
  (0..<1024).filter { descriptor in
    var bytes = [CChar](repeating: 0, count: 64)
    let count = readlink("/proc/self/fd/\(descriptor)", &bytes, bytes.count)
    let target = String(
      decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return target.hasPrefix("pipe:") || target == "anon_inode:[pidfd]"
  }
}

/// Lets this process have so many more descriptors; what it was given by its parent, which may be many, doesn't
/// count.
private func limitDescriptors(toOpen count: Int) {
  var free = 0
  var descriptor: Int32 = 0
  while free < count {
    if fcntl(descriptor, F_GETFD) < 0 { free += 1 }
    descriptor += 1
  }
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = min(rlim_t(descriptor), limit.rlim_max)
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
