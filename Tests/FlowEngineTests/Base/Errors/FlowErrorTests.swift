import FlowEngine
import Testing

private struct Outage: Error, Equatable {
  let region: Int
}

/// The values that an error keeps on its way.
@Suite("Errors of the engine")
struct FlowErrorTests {
  private let failing = Op("FailOp") { _ in throw Outage(region: 7)
  }.with(retry: RetryPolicy(attempts: 2))

  @Test("An error thrown by Swift survives retries, groups and redaction")
  func whatSwiftThrowsStaysThroughRetriesGroupsAndRedaction() throws {
    let loop = makeLoop()
    let alone = failing.start(on: loop, data: InitialData([("p", .secret("Outage".flowValue))]))
    try alone.waitUntilEnd()
    #expect(alone.error?.underlying as? Outage == Outage(region: 7))
    #expect(alone.error?.message == "<redacted>(region: 7)")
    #expect(alone.error?.path == "FailOp")
    let inner = Flow("inner").add(failing)
    let run = Flow("publish").data("list", ["a"])
      .addGrouped(inner, GroupDispatcher(input: "list", as: "item")).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.underlying as? Outage == Outage(region: 7))
    #expect(run.error?.path == "publish/inner #1/FailOp")
    #expect(run.error?.description == "[publish/inner #1/FailOp] <redacted>(region: 7)")
  }

  @Test("The error of a failed system call is found in the error of its run")
  func theErrorOfASystemCallStays() throws {
    let op = Op("OpenOp") { _ in throw SystemError("open: no such file", code: 2) }
    let run = op.start(on: makeLoop())
    try run.waitUntilEnd()
    #expect((run.error?.underlying as? SystemError)?.code == 2)
    #expect(run.error?.message == "open: no such file" && run.error?.code == 2)
  }

  @Test("A changed copy of an error keeps everything else")
  func aChangedErrorKeepsAllElse() {
    let error = FlowError(
      .timeout, "late", op: "SlowOp", traceback: "here", code: 3, limit: .seconds(5),
      underlying: Outage(region: 1), isRetriable: false, retryAfter: .seconds(9))
    let changed = error.with { $0.path = "flow/SlowOp" }
    #expect(changed.kind == .timeout && changed.message == "late" && changed.op == "SlowOp")
    #expect(changed.traceback == "here" && changed.code == 3 && changed.limit == .seconds(5))
    #expect(
      changed.underlying is Outage && changed.isRetriable == false
        && changed.retryAfter == .seconds(9))
    #expect(changed.path == "flow/SlowOp" && error.path == nil)
  }

  @Test("Closures of a policy decide on further attempts")
  func closuresOfAPolicyDecideAboutAttempts() throws {
    let loop = makeLoop()
    let policy = RetryPolicy(
      attempts: 9, when: { error, _ in (error.underlying as? Outage)?.region != 3 },
      delayAfter: { _, attempt in .seconds(10 * attempt) })
    let op = Op("FlakyOp") { throw Outage(region: $0.attempt) }.with(retry: policy)
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.underlying as? Outage == Outage(region: 3))
    #expect(run.duration == .seconds(30))
    let bad = Op("BadOp") {
      _ in throw FlowError(.error, "no")
    }.with(retry: RetryPolicy(attempts: 2, when: { _, _ in throw Outage(region: 4) }))
    let failed = bad.start(on: loop)
    try failed.waitUntilEnd()
    #expect(failed.error?.message == "'when' of retry failed: Outage(region: 4)")
    #expect(failed.error?.underlying is Outage)
  }

  @Test(
    "Without 'when', statuses of busy servers are retried where the request may be repeated",
    arguments: [
      (408, true), (425, true), (429, true), (500, true), (502, true), (503, true), (504, true),
      (400, false), (401, false), (404, false), (409, false), (501, false), (505, false),
    ])
  func statuses(status: Int, isTransient: Bool) throws {
    func error(mayRepeat: Bool) -> FlowError {
      FlowError.http("no", .init(status: status), mayRepeat: mayRepeat)
    }
    #expect(try attempts(error(mayRepeat: true)) == (isTransient ? 3 : 1))
    #expect(try attempts(error(mayRepeat: false)) == 1)
    // The policy, and the error itself, decide before that.
    #expect(try attempts(error(mayRepeat: false), when: { _ in true }) == 3)
    #expect(try attempts(error(mayRepeat: true), when: { _ in false }) == 1)
    #expect(try attempts(error(mayRepeat: false).with { $0.isRetriable = true }) == 3)
    #expect(
      try attempts(error(mayRepeat: true).with { $0.isRetriable = false }, when: { _ in true })
        == 1)
  }

  @Test("Without 'when', a request that can't have been received is retried, whatever its method")
  func phases() throws {
    for phase in RequestFailure.Phase.allCases {
      for (sent, mayRepeat) in [(false, false), (false, true), (true, false), (true, true)] {
        let error = FlowError.network("no", phase: phase, sent: sent, mayRepeat: mayRepeat)
        #expect(try attempts(error) == (mayRepeat || !sent ? 3 : 1))
      }
    }
    let refused = FlowError.network(
      "no", phase: .tls, sent: false, isCertificate: true, mayRepeat: true)
    #expect(try attempts(refused) == 1)
    let late = FlowError.timeout(after: .seconds(1)).with { $0.isTransient = false }
    #expect(try attempts(late) == 1)
  }

  @Test("A method, or a key of its own, lets a request be repeated")
  func methods() {
    for method: ByteString in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
      #expect(RequestFailure.mayRepeat(method: method))
    }
    for method: ByteString in ["POST", "PATCH", "TRACE", "get", ""] {
      #expect(!RequestFailure.mayRepeat(method: method))
      #expect(RequestFailure.mayRepeat(method: method, hasIdempotencyKey: true))
    }
  }

  @Test(
    "The error of a response keeps the beginning of its body, and its time for the next attempt")
  func response() throws {
    let body = ByteString(String(repeating: "x", count: 5000))
    let error = FlowError.http(
      "busy", .init(status: 503, headers: [("Retry-After", "7")], body: body),
      retryAfter: .seconds(7),
      mayRepeat: true)
    #expect(error.kind == .http && error.code == 503 && error.retryAfter == .seconds(7))
    #expect(error.logLine == "withError: busy")
    guard case .response(let response)? = error.with({ $0.op = "GetOp" }).request else {
      Issue.record("no response")
      return
    }
    #expect(response.status == 503 && response.body.bytes.count == 4096)
    #expect(response.headers.map { "\($0.name): \($0.value)" } == ["Retry-After: 7"])
    let loop = makeLoop()
    let run = Op("GetOp") { _ in throw error }.with(
      retry: RetryPolicy(attempts: 2, delay: .seconds(1))
    )
    .start(on: loop)
    try run.waitUntilEnd()
    #expect(run.duration == .seconds(7) && run.error?.kind == .http && run.error?.request != nil)
  }

  /// How many attempts there are at an op with 3 that fails with `error`.
  private func attempts(
    _ error: FlowError, when: (@Sendable (FlowError) -> Bool)? = nil
  ) throws -> Int {
    let policy =
      if let when {
        RetryPolicy(attempts: 3, when: { error, _ in when(error) })
      } else {
        RetryPolicy(attempts: 3)
      }
    var count = 0
    let run = Op("GetOp") { _ in
      count += 1
      throw error
    }.with(retry: policy).start(on: makeLoop())
    try run.waitUntilEnd()
    return count
  }
}
