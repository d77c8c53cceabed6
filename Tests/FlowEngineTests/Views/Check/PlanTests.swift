import FlowEngine
import Testing

@Suite("The plan of a flow")
struct PlanTests {
  private let step = Op("StepOp") { _ in }

  @Test("Each step is a line, with the steps of nested flows below it")
  func outline() {
    let inner = Flow("inner").add(step.with(timeout: .seconds(5)))
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

  @Test("A run keeps its original plan, and each name takes one line")
  func keptPlan() {
    let loop = FlowEventLoop()
    let flow = Flow("flow").add(Op("two\nlines") { _ in })
    let run = flow.start(on: loop)
    flow.add(step)
    #expect(run.plan() == "  1. two lines\n")
    #expect(flow.plan() == "  1. two lines\n  2. StepOp\n")
  }

  @Test("Flows that use a flow twice at each level don't explode")
  func doubling() {
    var flow = Flow("level 0").add(step)
    for level in 1...40 { flow = Flow("level \(level)").add(flow).add(flow) }
    let plan = flow.plan()
    #expect(plan.count < 3_000_000)
    #expect(plan.description.contains(": as above"))
  }
}
