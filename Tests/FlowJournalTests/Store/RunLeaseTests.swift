import FlowEngine
import FlowSystem
import Testing

@testable import FlowJournal

@Suite("The lease of a run")
struct RunLeaseTests {
  /// An unfinished run that this process doesn't hold any more.
  private func makeRun(_ test: TestStore, on loop: FlowEventLoop) throws -> ByteString {
    let run = try test.open().begin(script: "/s.lua", words: [], on: loop)
    run.end(.stopped)
    run.close()
    return run.id
  }

  /// Has another process hold all runs.
  private func give(_ test: TestStore, to pid: pid_t, start: Int64) throws {
    try test.execute("UPDATE runs SET is_held = 1, pid = \(pid), start = \(start)")
  }

  @Test("A run that a living process executes is refused to others, with the process")
  func livingHolder() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let id = try makeRun(test, on: loop)
    let process = try SleepingProcess()
    let pid = process.pid
    let start = try #require(ProcessIdentity.start(of: Int64(pid)))
    try give(test, to: pid, start: start)
    let store = try test.open()
    do {
      _ = try store.resume(nil, script: "/s.lua", on: loop)
      Issue.record("the run was continued")
    } catch {
      #expect(error.storeProblem == .held)
      #expect(error.message == "run \(id) is being executed by process \(pid)")
    }
    #expect(problem { try store.forget(id) } == .held)
    guard case .live(let holder, _) = try store.run(id).state else {
      Issue.record("the run isn't live")
      return
    }
    #expect(holder == Int64(pid))
    process.end()
    let run = try #require(try store.resume(nil, script: "/s.lua", on: loop))
    #expect(run.epoch == 2)
    run.close()
  }

  @Test("A later process of the same number doesn't hold a run")
  func reusedNumber() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    _ = try makeRun(test, on: loop)
    let process = try SleepingProcess()
    let pid = process.pid
    defer { process.end() }
    let start = try #require(ProcessIdentity.start(of: Int64(pid)))
    try give(test, to: pid, start: start - 1)
    #expect(try test.open().resume(nil, script: "/s.lua", on: loop)?.epoch == 2)
  }

  @Test("A process whose start isn't known holds a run while one of its number exists")
  func unknownStart() throws {
    let process = try SleepingProcess()
    let pid = process.pid
    var identity = ProcessIdentity.current
    identity.pid = Int64(pid)
    identity.start = 0
    #expect(identity.life == .alive)
    process.end()
    #expect(identity.life == .ended)
    for number in [0, -1, Int64.max] {
      identity.pid = number
      #expect(identity.life == .ended)
    }
  }

  @Test("A process that has ended without being collected doesn't hold a run")
  func zombie() throws {
    let process = try SleepingProcess()
    let pid = process.pid
    #expect(ProcessIdentity.start(of: Int64(pid)) != nil)
    kill(pid, SIGKILL)
    // Waits for the end, but leaves the process to be collected.
    var information = siginfo_t()
    waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT)
    #expect(ProcessIdentity.start(of: Int64(pid)) == nil)
    process.end()
  }

  @Test("A restarted machine holds no run; another one as long as it gives signs of life")
  func otherMachines() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    _ = try makeRun(test, on: loop)
    let store = try test.open()
    let now = Int64(WallClock.now())
    try give(test, to: 1, start: 1)
    try test.execute("UPDATE runs SET boot = x'00', beat = \(now)")
    let first = try #require(try store.resume(nil, script: "/s.lua", on: loop))
    first.end(.stopped)
    first.close()
    try give(test, to: 1, start: 1)
    try test.execute("UPDATE runs SET host = CAST('elsewhere' AS BLOB), beat = \(now)")
    do {
      _ = try store.resume(nil, script: "/s.lua", on: loop)
      Issue.record("the run was continued")
    } catch {
      #expect(error.message.description.hasSuffix("by process 1 on elsewhere"))
    }
    try test.execute("UPDATE runs SET beat = \(now - 600)")
    #expect(try store.resume(nil, script: "/s.lua", on: loop)?.epoch == 3)
  }

  @Test("A process whose run was continued by another one can't write any more")
  func fencing() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let first = try test.open().begin(script: "/s.lua", words: [], on: loop)
    #expect(first.writeAndWait(makeRecord("a"), on: loop) == nil)
    // As if this process hadn't been seen for a while.
    try test.execute("UPDATE runs SET pid = 1, start = -1")
    let store = try test.open()
    let second = try #require(try store.resume(first.id, script: "/s.lua", on: loop))
    #expect(first.writeAndWait(makeRecord("stale"), on: loop)?.storeProblem == .fenced)
    #expect(first.writeAndWait(makeRecord("stale"), on: loop)?.storeProblem == .fenced)
    #expect(first.failure?.storeProblem == .fenced)
    first.end(.finished)
    first.close()
    #expect(second.writeAndWait(makeRecord("b"), on: loop) == nil)
    #expect(try store.records(of: second.id).map(\.path) == ["a", "b"])
    guard case .live = try store.run(second.id).state else {
      Issue.record("the stale process ended the run")
      return
    }
    second.close()
  }

  @Test("After a failed write nothing is written any more")
  func failureStays() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let store = try test.open()
    let run = try store.begin(script: "/s.lua", words: [], on: loop)
    try test.execute("UPDATE runs SET epoch = 5")
    #expect(run.writeAndWait(makeRecord("lost"), on: loop)?.storeProblem == .fenced)
    try test.execute("UPDATE runs SET epoch = 1")
    #expect(run.writeAndWait(makeRecord("after"), on: loop)?.storeProblem == .fenced)
    #expect(run.failure?.storeProblem == .fenced)
    run.close()
    #expect(try store.records(of: run.id).isEmpty)
  }

  @Test("A process whose run was removed can't write any more")
  func removedRun() throws {
    let test = try TestStore()
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = try test.open().begin(script: "/s.lua", words: [], on: loop)
    try test.execute("DELETE FROM runs")
    #expect(run.writeAndWait(makeRecord("a"), on: loop)?.storeProblem == .fenced)
    run.close()
    #expect(try test.number("SELECT count(*) FROM records") == 0)
  }
}

/// A process that does nothing, and ends at the latest with this object.
private final class SleepingProcess {
  let pid: pid_t
  private var hasEnded = false

  init() throws {
    var pid = pid_t()
    var arguments = [strdup("sleep"), strdup("600"), nil]
    defer { for argument in arguments { free(argument) } }
    let result = posix_spawnp(&pid, "sleep", nil, nil, &arguments, nil)
    try #require(result == 0)
    self.pid = pid
  }

  deinit { end() }

  /// Ends and collects it.
  func end() {
    if hasEnded { return }
    hasEnded = true
    kill(pid, SIGKILL)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
  }
}
