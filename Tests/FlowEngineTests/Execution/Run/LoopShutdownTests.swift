@_spi(Scripting) import FlowEngine
import Glibc
import Testing

@Suite("The shutdown of a loop")
struct LoopShutdownTests {
  @Test("A loop that is shut down releases everything pending")
  func aLoopThatIsShutDownLetsGoOfAllThatIsPending() {
    weak var gone: FlowEventLoop?
    weak var state: TestOpaque?
    var kept: OpContext?
    do {
      let loop = makeLoop()
      gone = loop
      let made = TestOpaque(type: "x", base: "x")
      state = made
      let stuck = Op(name: "StuckOp", primaryInput: "i", body: HoldingBody { _ in })
      let keeping = Op(name: "KeepOp", body: HoldingBody { kept = $0 })
      let runs = [
        Flow("calls").willStart(WaitingCallback(seconds: nil)).start(on: loop),
        Flow("finish").didFinish(WaitingCallback(seconds: 5)).start(on: loop),
        Flow("group").data("list", .opaque(ListValue([.opaque(made)])))
          .addGrouped(stuck, GroupDispatcher(input: "list")).start(on: loop),
        waitingOp("WaitOp").start(on: loop), keeping.start(on: loop),
      ]
      for run in runs { run.observe(Job { _ = run.data }) }
      loop.enqueue { _ = loop.clock }
      loop.schedule(at: 9) { _ = loop.clock }
      loop.mailbox.post { $0.enqueue {} }
      #expect(loop.pendingRuns.count == 5)
      loop.shutdown()
      loop.shutdown()
      #expect(loop.pendingRuns.isEmpty)
      #expect(runs.filter { $0.state == .pending }.count == 4)
      // Nothing continues, whichever code requests it.
      kept?.end()
      kept?.log("late")
      loop.enqueue { Issue.record("a loop that was shut down ran a job") }
      #expect(!loop.schedule(at: 0) {}.isPending)
      #expect(loop.turn(mayBlock: true) == .idle)
      #expect(kept?.op.name == "KeepOp")
      #expect(kept?.run === runs[4])
    }
    kept = nil
    #expect(gone == nil)
    #expect(state == nil)
  }

  @Test("A deep run is shut down without recursion", .smallStack)
  func aDeepRunIsShutDownWithoutRecursion() {
    weak var gone: FlowEventLoop?
    do {
      let loop = makeLoop()
      gone = loop
      var flow = Flow("deepest").add(Op(name: "StuckOp", body: HoldingBody { _ in }))
      var items = FlowValue.integer(0)
      for _ in 0..<Scale.depth {
        flow = Flow("f").addGrouped(flow, GroupDispatcher(input: "item", as: "item"))
        items = .opaque(ListValue([items]))
      }
      let run = flow.start(on: loop, data: InitialData([("item", items)]))
      #expect(run.state == .pending)
      loop.shutdown()
    }
    #expect(gone == nil)
  }
}
