@_spi(Scripting) import FlowEngine
import Testing

/// The adapter that the documentation shows.
private struct FlowMetrics: RunMetrics {
  func increment(counter label: String, dimensions: [(String, String)], by amount: Int64) {
    Counter(label: label, dimensions: dimensions).increment(by: amount)
  }

  func record(timer label: String, dimensions: [(String, String)], nanoseconds: Int64) {
    Timer(label: label, dimensions: dimensions).recordNanoseconds(nanoseconds)
  }

  func record(gauge label: String, dimensions: [(String, String)], value: Double) {
    Gauge(label: label, dimensions: dimensions).record(value)
  }
}

@Suite("The metrics sink")
struct RunMetricsSinkTests {
  private func lines(_ body: (FlowEventLoop) -> Void) -> [String] {
    let values = MeasuredValues()
    MeasuredValues.$current.withValue(values) {
      let loop = FlowEventLoop(clock: VirtualClock())
      loop.eventSinks = [RunMetricsSink(FlowMetrics())]
      body(loop)
      loop.runUntilIdle()
    }
    return values.lines
  }

  @Test("Runs, ops, their outcomes and durations are measured")
  func runsAndOpsAreMeasured() {
    let flaky = Op("FlakyOp") { context in
      try await context.sleep(for: .seconds(1))
      if context.attempt == 1 { throw FlowError(.error, "busy") }
    }
    let failing = Op("FailingOp") { _ in throw FlowError(.error, "no") }
    let policy = RetryPolicy(attempts: 2, delay: .seconds(0.5))
    let lines = lines { loop in
      _ = Flow("good").add(flaky.with(retry: policy)).start(on: loop)
      Flow("bad").add(failing).start(on: loop).markObserved()
    }
    #expect(
      lines == [
        "flow.ops.duration op=FailingOp outcome=failed: 0.0",
        "flow.ops.duration op=FlakyOp outcome=succeeded: 2.5",
        "flow.ops.finished op=FailingOp outcome=failed: 1.0",
        "flow.ops.finished op=FlakyOp outcome=succeeded: 1.0",
        "flow.ops.retries op=FlakyOp: 1.0",
        "flow.runs.active: 0.0",
        "flow.runs.duration flow=bad outcome=failed: 0.0",
        "flow.runs.duration flow=good outcome=succeeded: 2.5",
        "flow.runs.finished flow=bad outcome=failed: 1.0",
        "flow.runs.finished flow=good outcome=succeeded: 1.0",
        "flow.runs.started flow=bad: 1.0", "flow.runs.started flow=good: 1.0",
      ])
  }

  @Test("Items of a group have the name of their op, and a run that an op starts counts as one op")
  func innerRunsCountOnce() {
    let inner = Op("InnerOp") { _ in }
    let outer = Op("OuterOp", needs: ["item": "integer"]) { context in _ = context.start(inner) }
    let lines = lines { loop in
      let items = FlowValue.opaque(ListValue([.integer(1), .integer(2)]))
      _ = Flow("flow").addGrouped(outer, GroupDispatcher(input: "items"))
        .data("items", items).start(on: loop)
    }
    #expect(
      lines.filter { $0.contains("finished") } == [
        "flow.ops.finished op=InnerOp outcome=succeeded: 2.0",
        "flow.ops.finished op=OuterOp outcome=succeeded: 2.0",
        "flow.runs.finished flow=flow outcome=succeeded: 1.0",
      ])
  }

  @Test("Pending runs are active")
  func pendingRunsAreActive() {
    let lines = lines { loop in
      let run = SleepOp(.seconds(60)).start(on: loop)
      _ = loop.turn(until: { loop.turn(mayBlock: false) == .waiting })
      #expect(MeasuredValues.current?.lines.contains("flow.runs.active: 1.0") == true)
      run.cancel()
    }
    #expect(lines.contains("flow.runs.active: 0.0"))
    #expect(lines.contains("flow.runs.finished flow=SleepOp outcome=cancelled: 1.0"))
  }

  @Test("Undos are counted by their outcomes")
  func undosAreCounted() {
    let create = Op("CreateOp") { _ in }.with(undo: { _ in })
    let lines = lines { loop in
      Flow("flow").add(create).add(Op("FailOp") { _ in throw FlowError(.error, "no") })
        .start(on: loop).markObserved()
    }
    #expect(lines.contains("flow.ops.undone op=CreateOp outcome=succeeded: 1.0"))
  }
}
