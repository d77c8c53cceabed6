import FlowEngine
import Testing

private struct Outage: Error, Equatable {
  let region: Int
}

/// What an error keeps on its way.
@Suite("Errors of the engine")
struct FlowErrorTests {
  private let failing = Op("FailOp", retry: RetryPolicy(attempts: 2)) { _ in throw Outage(region: 7)
  }

  @Test("An error thrown by Swift survives retries, groups and redaction")
  func whatSwiftThrowsStaysThroughRetriesGroupsAndRedaction() throws {
    let loop = makeLoop()
    let alone = failing.start(on: loop, data: [("p", .secret("Outage".flowValue))])
    try alone.wait()
    #expect(alone.error?.underlying as? Outage == Outage(region: 7))
    #expect(alone.error?.message == "<redacted>(region: 7)")
    #expect(alone.error?.path == "FailOp")
    let inner = Flow("inner").add(failing)
    let run = Flow("publish").data("list", ["a"])
      .addGrouped(inner, GroupDispatcher(input: "list", as: "item")).start(on: loop)
    try run.wait()
    #expect(run.error?.underlying as? Outage == Outage(region: 7))
    #expect(run.error?.path == "publish/inner #1/FailOp")
    #expect(run.error?.description == "[publish/inner #1/FailOp] <redacted>(region: 7)")
  }

  @Test("A changed copy of an error keeps everything else")
  func aChangedErrorKeepsAllElse() {
    let error = FlowError(
      .timeout, "late", op: "SlowOp", traceback: "here", code: 3, seconds: 5,
      underlying: Outage(region: 1), isRetriable: false, retryAfter: 9)
    let changed = error.with { $0.path = "flow/SlowOp" }
    #expect(changed.kind == .timeout && changed.message == "late" && changed.op == "SlowOp")
    #expect(changed.traceback == "here" && changed.code == 3 && changed.seconds == 5)
    #expect(changed.underlying is Outage && changed.isRetriable == false && changed.retryAfter == 9)
    #expect(changed.path == "flow/SlowOp" && error.path == nil)
  }

  @Test("Closures of a policy decide on further attempts")
  func closuresOfAPolicyDecideAboutAttempts() throws {
    let loop = makeLoop()
    let policy = RetryPolicy(
      attempts: 9, when: { error, _ in (error.underlying as? Outage)?.region != 3 },
      delayAfter: { _, attempt in Double(attempt) * 10 })
    let op = Op("FlakyOp", retry: policy) { throw Outage(region: $0.attempt) }
    let run = op.start(on: loop)
    try run.wait()
    #expect(run.error?.underlying as? Outage == Outage(region: 3))
    #expect(run.duration == 30)
    let bad = Op(
      "BadOp", retry: RetryPolicy(attempts: 2, when: { _, _ in throw Outage(region: 4) })
    ) {
      _ in throw FlowError(.error, "no")
    }
    let failed = bad.start(on: loop)
    try failed.wait()
    #expect(failed.error?.message == "'when' of retry failed: Outage(region: 4)")
    #expect(failed.error?.underlying is Outage)
  }
}
