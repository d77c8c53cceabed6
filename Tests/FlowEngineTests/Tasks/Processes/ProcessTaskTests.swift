import FlowEngine
import Glibc
import Testing

@Suite("Tasks of programs")
struct ProcessTaskTests {
  @Test("The task of a program succeeds with its result")
  func succeedsWithTheResult() {
    let loop = makeLoop()
    let task = ProcessTask(ProcessRequest(["cat"], stdin: "in"), on: loop)
    #expect(task.state == .pending)
    loop.runUntilIdle()
    #expect(task.state == .succeeded)
    #expect(task.isConcluded)
    #expect(task.result?.stdout == "in")
    #expect(task.result?.isCaptured == true)
    #expect(!task.cancel())
  }

  @Test("Another status than 0 is a failure unless it is unchecked")
  func anotherStatusIsAFailureUnlessItIsNotChecked() throws {
    let loop = makeLoop()
    let request = ProcessRequest(["sh", "-c", "echo no >&2; exit 3"])
    let checked = ProcessTask(request, on: loop)
    let unchecked = ProcessTask(request, check: false, on: loop)
    loop.runUntilIdle()
    let error = try #require(checked.error)
    #expect(error.message == "sh -c 'echo no >&2; exit 3' exited with status 3: no")
    #expect(error.code == 3)
    #expect(error.process?.stderr == "no\n")
    #expect(loop.unobservedFailures.map(\.name) == ["exec"])
    #expect(unchecked.state == .succeeded)
    #expect(unchecked.result?.status == 3)
  }

  @Test("A program that can't be started fails with the system's error number")
  func whatCannotBeStartedHasTheNumberOfTheSystem() {
    let loop = makeLoop()
    let task = ProcessTask(ProcessRequest(["no-such-program"]), on: loop)
    #expect(task.state == .failed)
    #expect(task.error?.code == Int64(ENOENT))
    #expect(task.error?.process == nil)
  }

  @Test("A cancelled task settles when its program has ended")
  func aCancelledTaskSettlesWhenItsProgramHasEnded() {
    let loop = makeLoop()
    let task = ProcessTask(ProcessRequest(["sleep", "100"]), on: loop)
    #expect(task.cancel(reason: "enough"))
    #expect(task.state == .pending)
    loop.runUntilIdle()
    #expect(task.state == .cancelled)
    #expect(task.error?.message == "cancelled: enough")
    #expect(task.result == nil)
  }

  /// A virtual clock stands still while programs run, so it can't be the one that ends them.
  @Test("The timeout of a program counts real time")
  func aTimeoutIsOneOfRealTime() {
    for loop in [makeLoop(), FlowEventLoop()] {
      var request = ProcessRequest(["sleep", "100"])
      request.timeout = .seconds(0.01)
      let task = ProcessTask(request, on: loop)
      let begun = loop.now()
      loop.runUntilIdle()
      #expect(task.error?.kind == .timeout)
      #expect(task.error?.message == "timed out after 0.01s")
      if loop.timeSource.isVirtual { #expect(loop.now() == begun) }
    }
  }

  @Test("An unused timeout is removed")
  func aTimeoutThatIsNotReachedIsTakenBack() {
    let loop = FlowEventLoop()
    var request = ProcessRequest(["true"])
    request.timeout = .seconds(100)
    let task = ProcessTask(request, on: loop)
    let begun = SystemClock().now()
    loop.runUntilIdle()
    #expect(task.state == .succeeded)
    #expect(SystemClock().now() - begun < 50_000_000_000)
  }

  @Test("An uncaptured program shares the outputs of its parent")
  func outputsThatAreNotCollectedAreOnesOwn() async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardOutputContent]
    ) {
      func status() -> Int32 {
        let loop = FlowEventLoop()
        var request = ProcessRequest(["echo", "from the program"])
        request.capturesOutput = false
        let task = ProcessTask(request, on: loop)
        loop.runUntilIdle()
        return task.result?.isCaptured == false && task.result?.stdout == "" ? 0 : 1
      }
      exit(status())
    }
    let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
    #expect(output.contains("from the program\n"))
  }

  @Test("Cancelling one owner stops only its programs")
  func programsOfOneOwnerAreCancelledAlone() {
    let loop = makeLoop()
    final class Owner {}
    let owner = Owner()
    var request = ProcessRequest(["sleep", "100"])
    request.owner = ObjectIdentifier(owner)
    let owned = ProcessTask(request, on: loop)
    let other = ProcessTask(ProcessRequest(["cat"], stdin: "x"), on: loop)
    loop.cancelProcesses(of: ObjectIdentifier(owner))
    loop.runUntilIdle()
    #expect(owned.state == .cancelled)
    #expect(other.state == .succeeded)
  }

  @Test("A loop that is shut down kills its programs and starts no more")
  func aLoopThatIsShutDownKillsItsProgramsAndStartsNoOthers() async {
    await #expect(processExitsWith: .success) {
      // All is released before the exit, where the leak checker looks.
      func status() -> Int32 {
        let loop = FlowEventLoop()
        let task = ProcessTask(ProcessRequest(["sleep", "100"]), on: loop)
        loop.shutdown()
        guard task.state == .pending else { return 2 }
        guard waitpid(-1, nil, WNOHANG) == -1, errno == ECHILD else { return 3 }
        let late = ProcessTask(ProcessRequest(["true"]), on: loop)
        return late.error?.kind == .usage ? 0 : 4
      }
      exit(status())
    }
  }

  @Test("Cancelling a run cancels its programs")
  func cancellingARunCancelsThePrograms() throws {
    let loop = makeLoop()
    let run = Flow("flow").add(ExecOp("sleep", "100")).start(on: loop)
    #expect(run.cancel(reason: "enough"))
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(run.error?.message == "cancelled: enough")
    #expect(!run.cancel())
  }
}
