import FlowEngine
import Testing

@Suite("Monitors of a loop's runs")
struct RunMonitorTests {
  private final class Notes: RunMonitor {
    var lines: [String] = []
    var executes = true

    func runBegins(_ run: Run) -> Bool {
      lines.append("\(run.name) begins, \(run.data.entries.count) keys")
      return executes
    }

    func runEnded(_ run: Run) { lines.append("\(run.name) \(run.state.name)") }
  }

  @Test("A monitor is notified of top-level runs, in order")
  func topLevelRuns() throws {
    let loop = FlowEventLoop()
    let notes = Notes()
    loop.runMonitors.append(notes)
    let inner = Op("InnerOp") { _ in }
    let outer = Op("OuterOp") { context in _ = context.start(inner) }
    let failing = Op("FailingOp") { _ in throw FlowError(.error, "failed") }
    try outer.start(on: loop, data: InitialData([("key", .integer(1))])).waitUntilEnd()
    let failed = failing.start(on: loop)
    failed.markObserved()
    #expect(
      notes.lines == [
        "OuterOp begins, 1 keys", "OuterOp succeeded", "FailingOp begins, 0 keys",
        "FailingOp failed",
      ])
  }

  @Test("A run that a monitor skips succeeds with its data")
  func notExecuted() throws {
    let loop = FlowEventLoop()
    let notes = Notes()
    notes.executes = false
    loop.runMonitors.append(notes)
    var calls = 0
    let op = Op("CountOp") { _ in calls += 1 }
    let flow = Flow("flow").data("key", .integer(1)).add(op)
      .willStart { _ in calls += 1 }.didFinish { _ in calls += 1 }
    let run = flow.start(on: loop)
    #expect(calls == 0)
    #expect(run.state == .succeeded)
    #expect(run.isConcluded)
    #expect(run.data.entries.count == 1)
    #expect(loop.pendingRuns.isEmpty)
    #expect(notes.lines == ["flow begins, 1 keys", "flow succeeded"])
  }
}
