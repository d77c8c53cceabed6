import FlowEngine
import Glibc
import Testing

@Suite(.serialized) struct ProcessTests {
  private final class Box {
    var result: Result<ProcessResult, FlowError>?
    var value: ProcessResult? { try? result?.get() }
    var error: FlowError? {
      if case .failure(let error)? = result { error } else { nil }
    }
  }

  private func start(_ loop: EventLoop, _ request: ProcessRequest) -> (ChildProcess, Box) {
    let box = Box()
    let child = loop.startProcess(request) { box.result = $0 }
    return (child, box)
  }

  private func shell(_ text: ByteString) -> ProcessRequest { ProcessRequest(["sh", "-c", text]) }

  @Test func aHundredMegabytesPassBothWays() {
    let loop = makeLoop()
    let bytes = ByteString([UInt8](repeating: 120, count: 100 << 20))
    let (_, box) = start(loop, ProcessRequest(["cat"], stdin: bytes))
    loop.runUntilIdle()
    #expect(box.value?.stdout == bytes)
    #expect(box.value?.status == 0)
  }

  @Test func cancellingStopsTheWholeGroup() throws {
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
      request.gracePeriod = 1000
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
      child.cancel(.cancelled(reason: "enough"))
      child.cancel(.cancelled(reason: "twice"))
      loop.runUntilIdle()
      #expect(box.error?.message == "cancelled: enough")
      #expect(SystemClock().now() - begun < 100_000_000_000)
      expectGone(pid)
    }
  }

  /// What was sent a signal dies when the system gets to it. Nobody may reap it here, so being a
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

  @Test func whatIgnoresToBeAskedIsKilledAfterTheGracePeriod() {
    let path = "/tmp/flowlua-test-\(getpid())-ready"
    for loop in [makeLoop(), EventLoop()] {
      var request = shell(
        ByteString("trap '' TERM; : > \(path); while :; do sleep 100; done"))
      request.gracePeriod = 0.05
      let (child, box) = start(loop, request)
      while unlink(path) != 0 { usleep(1000) }
      while loop.turn(mayBlock: false) == .worked {}
      let begun = SystemClock().now()
      child.cancel(.timeout(seconds: 1))
      loop.runUntilIdle()
      let took = SystemClock().now() - begun
      #expect(box.error?.kind == .timeout)
      #expect(took >= 49_000_000 && took < 60_000_000_000)
    }
  }

  @Test func whatAProgramLeavesBehindMayGoOnWriting() {
    let loop = makeLoop()
    let (_, box) = start(loop, shell("(sleep 0.03; echo late) & echo early"))
    loop.runUntilIdle()
    #expect(box.value?.stdout == "early\nlate\n")
  }

  @Test func signalsIgnoredHereAreNotIgnoredThere() {
    let loop = makeLoop()
    signal(SIGPIPE, SIG_IGN)
    signal(SIGHUP, SIG_IGN)
    let (_, box) = start(
      loop, ProcessRequest(["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]))
    loop.runUntilIdle()
    signal(SIGPIPE, SIG_DFL)
    signal(SIGHUP, SIG_DFL)
    #expect(box.value?.stdout == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n")
  }

  @Test func inputThatNobodyReadsRaisesNoSignal() {
    let loop = makeLoop()
    let bytes = ByteString([UInt8](repeating: 1, count: 1 << 20))
    let (_, box) = start(loop, ProcessRequest(["true"], stdin: bytes))
    loop.runUntilIdle()
    #expect(box.value?.status == 0)
  }

  /// With few descriptors all of many programs run, each once; without any, there is an error.
  @Test func programsWaitForDescriptors() async {
    await #expect(processExitsWith: .success) {
      // All is released before the exit, where the leak checker looks.
      func status() -> Int32 {
        limitDescriptors(toOpen: 58)
        let loop = EventLoop()
        var ended = 0
        var outputs: Set<ByteString> = []
        for number in 0..<300 {
          loop.startProcess(ProcessRequest(["echo", "\(number)"])) { result in
            ended += 1
            if let result = try? result.get() { outputs.insert(result.stdout) }
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
        var message: ByteString?
        loop.startProcess(ProcessRequest(["true"])) { result in
          if case .failure(let error) = result { message = error.message }
        }
        for descriptor in taken { close(descriptor) }
        guard message == "can't run 'true': Too many open files" else { return 4 }
        return 0
      }
      exit(status())
    }
  }

  @Test func whatWaitsCanBeCancelledWithoutEverStarting() async {
    await #expect(processExitsWith: .success) {
      func status() -> Int32 {
        limitDescriptors(toOpen: 34)
        let loop = EventLoop()
        var ended = 0
        let children = (0..<50).map { _ in
          loop.startProcess(ProcessRequest(["sleep", "100"])) { result in
            if case .failure(let error) = result, error.kind == .cancelled { ended += 1 }
          }
        }
        for child in children.reversed() { child.cancel(.cancelled()) }
        loop.runUntilIdle()
        return ended == 50 && wait(nil) == -1 ? 0 : 1
      }
      exit(status())
    }
  }

  /// In a process of its own, where nobody else has children or opens files.
  @Test func nothingIsLeftBehind() async {
    await #expect(processExitsWith: .success) {
      do {
        let loop = EventLoop()
        let requests = [
          ProcessRequest(["true"]), ProcessRequest(["no-such-program"], stdin: "x"),
          ProcessRequest(["cat"], stdin: "x"), ProcessRequest(["true"], cwd: "/no/such"),
          ProcessRequest(["sh", "-c", "kill -9 $$"]), ProcessRequest(["a\0b"]),
        ]
        let before = openDescriptors()
        for request in requests { loop.startProcess(request) { _ in } }
        let late = loop.startProcess(ProcessRequest(["sleep", "100"], stdin: "x")) { _ in }
        late.cancel(.cancelled())
        loop.runUntilIdle()
        guard waitpid(-1, nil, WNOHANG) == -1, errno == ECHILD else { exit(2) }
        guard openDescriptors() == before else { exit(3) }
        for _ in 0..<5 { loop.startProcess(ProcessRequest(["sleep", "100"])) { _ in } }
        loop.killProcesses()
        guard loop.turn(mayBlock: false) == .idle else { exit(4) }
        loop.startProcess(ProcessRequest(["sleep", "100"], stdin: "x")) { _ in }
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
