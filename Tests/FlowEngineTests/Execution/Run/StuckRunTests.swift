import FlowEngine
import Testing

@Suite("Runs that nothing can end")
struct StuckRunTests {
  @Test("A stalled run fails at its innermost op")
  func aStalledRunFailsAtItsInnermostOp() {
    let loop = makeLoop()
    let stuck = StuckBody()
    defer { stuck.contexts = [] }
    let inner = Flow("inner").add(Op(name: "StuckOp", body: stuck))
    let run = Flow("outer").add(inner).add(Op("NeverOp") { _ in }).start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.kind == .stalled)
    #expect(
      body(run).suffix(2) == [
        "[StuckOp] DidFinish: withError: stalled: [StuckOp] never finished",
        "[inner] DidFinish: withError: stalled: [StuckOp] never finished",
      ])
    #expect(stuck.asked.count == 1)
  }

  @Test("A body that ignores a stop is ended at last")
  func aBodyThatDoesNotEndWhenAskedIsEndedInTheEnd() {
    let loop = makeLoop()
    let stuck = StuckBody(endsWhenAsked: false)
    defer { stuck.contexts = [] }
    let run = Op(name: "StuckOp", body: stuck).start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.message == "stalled: [StuckOp] never finished")
    #expect(stuck.asked.count == 1)
    stuck.contexts[0].end()
    loop.runUntilIdle()
  }

  @Test("Each stuck member of a group is named")
  func eachStuckMemberOfAGroupIsNamed() {
    let loop = makeLoop()
    let stuck = StuckBody()
    defer { stuck.contexts = [] }
    let op = Op(name: "StuckOp", primaryInput: "item", body: stuck)
    let run = Flow().data("items", [1, 2])
      .addGrouped(op, GroupDispatcher(input: "items", allowFailure: true, failures: "failed"))
      .start(on: loop)
    #expect(throws: Never.self) { try run.waitUntilEnd() }
    #expect(body(run).filter { $0.contains("stalled: [StuckOp #") }.count >= 2)
  }

  @Test("A stuck callback stalls the run")
  func aStuckCallbackStallsTheRun() {
    let loop = makeLoop()
    let run = Flow("calls").willStart(WaitingCallback(seconds: nil)).start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.message == "stalled: [calls] never finished")
  }

  @Test("A wait that nothing can end is an error, even in the run's own body")
  func aWaitThatNothingCanEndIsAnErrorEvenInTheRunsOwnBody() {
    let loop = makeLoop()
    var caught: FlowError?
    let op = Op("SelfishOp") { context in
      do throws(FlowError) { try context.run.waitUntilEnd() } catch { caught = error }
    }
    let run = op.start(on: loop)
    #expect(caught?.message == "stalled: nothing can end this wait")
    #expect(run.state == .succeeded)
  }
}
