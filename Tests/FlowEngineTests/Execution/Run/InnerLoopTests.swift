import FlowEngine
import Testing

/// Loops inside loops, and replacements of ops.
@Suite("Inner loops")
struct InnerLoopTests {
  @Test("An inner loop has its own time")
  func timeOfTheInnerLoopIsItsOwn() {
    let outer = makeLoop()
    defer { outer.shutdown() }
    var ticks = 0
    let pending = SleepOp(.seconds(1)).start(on: outer)
    outer.schedule(after: .seconds(0.5)) { ticks += 1 }
    let inner = FlowEventLoop(within: outer, clock: VirtualClock())
    let run = outer.standStill(for: inner) {
      let run = SleepOp(.seconds(3600)).start(on: inner)
      inner.runUntilIdle()
      return run
    }
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(3600))
    #expect(ticks == 0)
    #expect(pending.state == .pending)
    outer.runUntilIdle()
    #expect(ticks == 1)
    #expect(pending.duration == .seconds(1))
    #expect(run.id > pending.id)
  }

  @Test("A continuation on the inner loop waits for a task of the outer loop")
  func whatFollowsATaskOfTheOuterLoopWaitsForThat() throws {
    let outer = makeLoop()
    let context = FlowPromise<Int>(on: outer, keepsLoop: false)
    var seen: Int?
    context.task.finallyOnSuccess(.immediate) { seen = $0 }
    let inner = FlowEventLoop(within: outer, clock: VirtualClock())
    try outer.standStill(for: inner) {
      try context.setResult(5)
      inner.runUntilIdle()
      #expect(seen == nil)
    }
    outer.runUntilIdle()
    #expect(seen == 5)
  }

  @Test("Failures of the inner loop aren't lost")
  func failuresOfTheInnerLoopAreNotLost() {
    let outer = makeLoop()
    let inner = FlowEventLoop(within: outer, clock: VirtualClock())
    let run = outer.standStill(for: inner) {
      Op("FailOp") { _ in throw FlowError(.error, "lost") }.start(on: inner)
    }
    #expect(outer.unobservedFailures.map(\.name) == ["FailOp"])
    run.markObserved()
    #expect(outer.unobservedFailures.isEmpty)
  }

  @Test("Ops are replaced by name and keep their declarations")
  func opsAreReplacedByNameWithTheirDeclarations() {
    let loop = makeLoop()
    let real = Op("UploadOp", needs: ["image": "string"], gives: ["url": "string"]) { _ in
      Issue.record("the real one ran")
    }
    let flow = Flow("flow").data("image", "x").add(real).add(Flow("inner").add(real))
    var names: [ByteString] = []
    let fakes = OpReplacements([
      "UploadOp": Op("fake") { context in
        names.append(context.displayName)
        context.set("url", "u")
      }
    ])
    loop.replacements = fakes
    #expect(flow.start(on: loop).state == .succeeded)
    #expect(names == ["UploadOp", "UploadOp"])
    #expect(fakes.usedNames == ["UploadOp"])
    loop.replacements = OpReplacements(["UploadOp": Op("fake") { _ in }])
    let run = flow.start(on: loop)
    #expect(run.error?.kind == .missingOutput)
    run.markObserved()
    #expect(flow.namesWithin == ["flow", "inner", "UploadOp"])
  }
}
