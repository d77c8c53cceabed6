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

  @Test("Runs that no op has started are told of, in order")
  func topLevelRuns() throws {
    let loop = EventLoop()
    let notes = Notes()
    loop.runMonitors.append(notes)
    let inner = Op("InnerOp") { _ in }
    let outer = Op("OuterOp") { context in _ = context.start(inner) }
    let failing = Op("FailingOp") { _ in throw FlowError(.error, "failed") }
    try outer.start(on: loop, data: [("key", .integer(1))]).wait()
    let failed = failing.start(on: loop)
    failed.markObserved()
    #expect(
      notes.lines == [
        "OuterOp begins, 1 keys", "OuterOp succeeded", "FailingOp begins, 0 keys",
        "FailingOp failed",
      ])
  }

  @Test("A run that a monitor doesn't let be executed succeeds with its data")
  func notExecuted() throws {
    let loop = EventLoop()
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

@Suite("The plan of a flow")
struct PlanTests {
  private let step = Op("StepOp") { _ in }

  @Test("Each step is a line, those of nested flows below")
  func outline() {
    let inner = Flow("inner").add(step, timeout: 5)
    let flow = Flow("outer").add(inner).addParallel([step, step])
      .addGrouped(step, GroupDispatcher(input: "items", output: "results"))
      .case("plan", "pro").add(step).otherwise().add(inner).combine().addFinally(step)
    #expect(
      flow.plan() == """
          1. inner:
            1. StepOp (timeout 5s)
          2. at the same time:
            - StepOp
            - StepOp
          3. for each of items -> results, 3 at a time:
            - StepOp
          4. one of:
            - if plan is pro:
              1. StepOp
            - otherwise:
              1. inner:
                1. StepOp (timeout 5s)
          finally:
            1. StepOp

        """)
    #expect(step.plan() == "  1. StepOp\n")
    #expect(Flow("empty").plan() == "  no steps\n")
  }

  @Test("A run keeps the plan that it began with; names are one line")
  func keptPlan() {
    let loop = EventLoop()
    let flow = Flow("flow").add(Op("two\nlines") { _ in })
    let run = flow.start(on: loop)
    flow.add(step)
    #expect(run.plan() == "  1. two lines\n")
    #expect(flow.plan() == "  1. two lines\n  2. StepOp\n")
  }

  @Test("Flows that use flows twice, many levels deep, don't explode")
  func doubling() {
    var flow = Flow("level 0").add(step)
    for level in 1...40 { flow = Flow("level \(level)").add(flow).add(flow) }
    let plan = flow.plan()
    #expect(plan.count < 3_000_000)
    #expect(plan.description.contains(": as above"))
  }
}

@Suite("Several graphs in one")
struct GraphCollectionTests {
  @Test("One flow is drawn as it is, several side by side")
  func merging() {
    let loop = EventLoop()
    let step = Op("StepOp") { _ in }
    let one = Flow("one").add(step)
    let graphs = GraphCollection()
    #expect(graphs.isEmpty)
    graphs.add(one.start(on: loop))
    graphs.add(one.start(on: loop))
    #expect(graphs.dot() == one.dot())
    #expect(graphs.mermaid() == one.mermaid())
    graphs.add(Flow("two").add(one).start(on: loop))
    graphs.add(step.start(on: loop))
    #expect(
      graphs.mermaid() == """
        flowchart TD
          subgraph g1["one"]
            n1(["start"])
            n2["StepOp"]
            n3(["end"])
          end
          subgraph g2["two"]
            n4(["start"])
            subgraph g3["one"]
              n5["StepOp"]
            end
            n6(["end"])
          end
          subgraph g4["StepOp"]
            n7(["start"])
            n8["StepOp"]
            n9(["end"])
          end
          n1 --> n2
          n2 --> n3
          n4 --> n5
          n5 --> n6
          n7 --> n8
          n8 --> n9

        """)
  }
}
