import FlowEngine
import Testing

/// Values that code of an op notes.
// Unchecked: only the thread of a test uses it, which the compiler doesn't know.
private final class Notes<Value>: @unchecked Sendable {
  var all: [Value] = []
}

/// The names with which ops of another package look at their execution.
@Suite("Names for programs that write ops")
struct OpNamesTests {
  private func makeLoop() -> FlowEventLoop { FlowEventLoop(clock: VirtualClock()) }

  @Test("A callback that comes late sees that its op has ended")
  func open() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let seen = Notes<Bool>()
    let run = Op("WaitOp") { context in
      context.defer { seen.all.append($0.isOpen) }
      context.loop.schedule(after: .seconds(1)) { seen.all.append(context.isOpen) }
      context.loop.schedule(after: .seconds(3)) { seen.all.append(context.isOpen) }
      try await context.sleep(for: .seconds(2))
    }.start(on: loop)
    try run.wait()
    loop.runUntilIdle()
    // While it waits, in its cleanup, and after its end.
    #expect(seen.all == [true, true, false])
    #expect(loop.takeUnobservedFailures().isEmpty)
  }

  @Test("A stopped op is open until its body has ended")
  func stopped() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let seen = Notes<Bool>()
    let run = Op("StopOp") { context in
      do { try await context.sleep(for: .seconds(10)) } catch { seen.all.append(context.isOpen) }
    }.with(timeout: .seconds(1)).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.kind == .timeout)
    #expect(seen.all == [true])
  }

  @Test("The time left is that of the nearest limit, and nil without one")
  func timeLeft() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let left = Notes<Duration?>()
    let look = Op("LookOp") { context in
      left.all.append(context.timeLeft)
      try await context.sleep(for: .seconds(2))
      left.all.append(context.timeLeft)
    }
    try look.start(on: loop).wait()
    try look.with(timeout: .seconds(5)).start(on: loop).wait()
    let flow = Flow("flow").add(SleepOp(.seconds(1))).add(look.with(timeout: .seconds(50)))
    try flow.with(timeout: .seconds(10)).start(on: loop).wait()
    #expect(left.all == [nil, nil, .seconds(5), .seconds(3), .seconds(9), .seconds(7)])
  }

  @Test("A busy op finds out that its time is over")
  func busy() throws {
    let loop = FlowEventLoop()
    defer { loop.shutdown() }
    let run = Op("BusyOp") { context in
      while let left = context.timeLeft, left > .zero {}
      throw FlowError(.timeout, "no time for the rest")
    }.with(timeout: .milliseconds(5)).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.kind == .timeout)
  }

  @Test("An op ends the group that it is executed for, and one outside of a group ends none")
  func group() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var begun: [Int] = []
    var ended: [Bool] = []
    let probe = Op("ProbeOp", needs: ["server": "integer"], gives: ["found": "integer?"]) {
      context in
      let server = try context.value("server", as: Int.self)
      begun.append(server)
      if server == 2 {
        ended.append(context.endGroup())
        context.set("found", server)
      }
    }
    let run = Flow("search").data("servers", [1, 2, 3, 4])
      .addGrouped(probe, GroupDispatcher(input: "servers", output: "found", maxConcurrent: 1))
      .start(on: loop)
    let data = try run.wait()
    #expect(data.value("found", as: [Int].self) == [2])
    #expect(begun == [1, 2])
    try probe.start(on: loop, data: ["server": 2]).wait()
    #expect(ended == [true, false])
  }

  @Test("An op says what it needs and gives")
  func declarations() {
    let op = Op("CopyOp", needs: ["url": "string", "size": "integer?"], gives: ["path": "string"]) {
      _ in
    }
    #expect(op.declaredNeeds == ["url": "string", "size": "integer?"])
    #expect(op.declaredGives == ["path": "string"])
    // A flow that declares nothing has those of its only step.
    #expect(Flow("copy").add(op).declaredNeeds == op.declaredNeeds)
    #expect(Flow("copy").needs(["x": "any"]).add(op).declaredNeeds == ["x": "any"])
    #expect(Op("NoOp") { _ in }.declaredGives.isEmpty)
  }

  @Test("A test goes forward on a virtual clock by steps")
  func steps() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var attempts = 0
    let run = Flow("retries").add(
      Op("FailOp") { _ in
        attempts += 1
        if attempts < 3 { throw FlowError(.network, "reset") }
      }.with(retry: RetryPolicy(attempts: 3, delay: .seconds(10)))
    ).start(on: loop)
    #expect(attempts == 1)
    loop.turn(for: .seconds(9))
    #expect(attempts == 1 && run.state == .pending)
    // All that is due at the end of the step has run.
    loop.turn(for: .seconds(1))
    #expect(attempts == 2)
    loop.turn(for: .seconds(10))
    #expect(attempts == 3 && run.state == .succeeded && run.duration == .seconds(20))
    // Without anything to do the time passes, too.
    loop.turn(for: .seconds(5))
    let late = SleepOp(.zero).start(on: loop)
    loop.turn(for: .zero)
    #expect(late.state == .succeeded)
  }
}
