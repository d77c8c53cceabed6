import FlowEngine
import Testing

@Suite("Ops that execute other ops over their own data")
struct InnerExecutionTests {
  /// An op that executes another one, and ends as that does.
  private final class AroundBody: OpBody, TaskObserver {
    let inner: Op?
    private var context: OpContext?
    private var task: FlowTask<Void>?

    init(_ inner: Op) { self.inner = inner }

    func start(_ context: OpContext) -> CallState {
      guard let inner else { return .finished }
      self.context = context
      let task = context.execute(inner)
      self.task = task
      task.observe(self)
      return .suspended
    }

    func run() {
      let ended = context
      context = nil
      ended?.end(task?.error)
    }

    func taskIsGone() {
      context = nil
      task = nil
    }
  }

  private func around(_ op: Op) -> Op { Op(name: "AroundOp", body: AroundBody(op)) }

  @Test("The inner op works on the same data and has lines of its own")
  func sameData() throws {
    let loop = makeLoop()
    let inner = waitingOp("InnerOp") { $0.set("size", 2) }
    let run = Flow("f").data("name", "a").add(around(inner)).start(on: loop)
    try run.wait()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        name: a
        12:00:00 AM [AroundOp] WillStart
        12:00:00 AM [InnerOp] WillStart
        12:00:01 AM [DataBucket] add for size: 2
        12:00:01 AM [InnerOp] DidFinish: successfully
        12:00:01 AM [AroundOp] DidFinish: successfully
        12:00:01 AM [DataBucket] end with:
        name: a
        size: 2
        Flow isSuccess: true
        ======    Ending    ======

        """)
    #expect(run.op.namesWithin == ["f", "AroundOp", "InnerOp"])
  }

  @Test("The inner op's retries are its own, and its failure is the task's")
  func failure() throws {
    let loop = makeLoop()
    let inner = Op("InnerOp") { _ in
      throw FlowError(.error, "no space")
    }.with(retry: RetryPolicy(attempts: 3))
    let run = around(inner).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.op == "InnerOp")
    #expect(run.summary().description.contains("[InnerOp] Retry 3/3 in 0s: no space"))
  }

  @Test("An inner op still pending when the outer op returns is cancelled and awaited")
  func leftover() throws {
    let loop = makeLoop()
    let inner = Op("InnerOp", needs: [:]) { $0.defer { $0.log("cleaned up") } }
    let slow = waitingOp("SlowOp", 60)
    let op = Op("AroundOp") { context in
      context.execute(inner)
      context.execute(slow)
    }
    let run = op.start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(
      run.events.filter { $0.kind == .finish }.map { "\($0.op) \($0.message ?? "")" } == [
        "InnerOp successfully", "SlowOp cancelled", "AroundOp successfully",
      ])
    #expect(run.duration == .zero)
  }

  @Test("A settled op starts no inner op")
  func settled() throws {
    let loop = makeLoop()
    let inner = Op("InnerOp") { $0.log("never") }
    var errors: [FlowError.Kind?] = []
    let op = Op("AroundOp") { context in
      context.defer { errors.append($0.execute(inner).error?.kind) }
      context.fail(FlowError(.error, "settled"))
      errors.append(context.execute(inner).error?.kind)
    }
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(errors == [.usage, .usage])
    #expect(!run.summary().description.contains("never"))
  }

  @Test("Shutting down the loop ends the inner op")
  func shutdown() {
    var loop: FlowEventLoop? = makeLoop()
    weak var kept: AnyObject?
    do {
      let body = AroundBody(waitingOp("InnerOp", 60))
      kept = body
      _ = loop.map { Op(name: "AroundOp", body: body).start(on: $0) }
    }
    loop?.shutdown()
    loop = nil
    #expect(kept == nil)
  }
}
