@_spi(Scripting) import FlowEngine
import Testing

@Suite("Pending runs at the shutdown of a loop")
struct PendingAtShutdownTests {
  /// Starts what waits, each in another way; `made` and the loop are held by it.
  private static let pending:
    [(name: String, start: @Sendable (FlowEventLoop, TestOpaque) -> Run)] =
      [
        ("op", { loop, made in hold(loop, made).start(on: loop) }),
        (
          "case",
          { loop, made in
            Flow("f").case(where: WaitingPredicate(nil)).add(hold(loop, made)).start(on: loop)
          }
        ),
        (
          "parallel",
          { loop, made in
            let hold = hold(loop, made)
            return Flow("f").addParallel(hold, Flow("inner").add(hold)).start(on: loop)
          }
        ),
        (
          "finally",
          { loop, made in
            Flow("f").add(quick("WorkOp")).addFinally(hold(loop, made)).start(on: loop)
          }
        ),
        (
          "timeout",
          { loop, made in
            Flow("f").add(Flow("inner").add(hold(loop, made)).with(timeout: .seconds(5))).start(
              on: loop)
          }
        ),
        (
          "retry of an op",
          { loop, made in
            let op = Op("BadOp") { context in
              context.state = made
              throw FlowError(.error, "\(loop.now())")
            }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(5)))
            return op.start(on: loop)
          }
        ),
        (
          "retries of items, waiting for their delay, a slot or the time of a start",
          { loop, made in
            let op = Op("BadOp") { context in
              context.state = made
              throw FlowError(.error, "\(loop.now())")
            }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(5)))
            let hold = hold(loop, made)
            let items: [ByteString] = ["a", "b", "c", "d"]
            let run = Flow("f").data("list", items)
              .addParallel(
                Flow("delay").addGrouped(
                  op, GroupDispatcher(input: "list", maxConcurrent: 1, as: "item")),
                Flow("rate").addGrouped(
                  op,
                  GroupDispatcher(input: "list", as: "item", rate: RateLimit(2, per: .seconds(9)))
                ),
                hold
              ).start(on: loop)
            for _ in 0..<20 { _ = loop.turn(mayBlock: false) }
            return run
          }
        ),
        (
          "retry of a flow",
          { loop, made in
            let flow = Flow("f").data("x", .opaque(made)).add(failing("BadOp"))
            return flow.with(retry: RetryPolicy(attempts: 2, delay: .seconds(5))).start(on: loop)
          }
        ),
        (
          "cleanup",
          { loop, made in
            Op("TidyOp") { context in
              context.defer { _ in _ = loop.now() }
              context.addCleanup(WaitingCleanup(nil) { _ = (loop, made) })
            }.start(on: loop)
          }
        ),
        (
          "cleanup of a stopped op",
          { loop, made in
            let op = Op(
              name: "TidyOp",
              body: HoldingBody { $0.addCleanup(WaitingCleanup(nil) { _ = (loop, made) }) })
            let run = op.start(on: loop)
            run.cancel()
            while loop.turn(mayBlock: false) == .worked {}
            return run
          }
        ),
        (
          "child",
          { loop, made in
            let hold = hold(loop, made)
            return Op(name: "ChildOp", body: HoldingBody { _ = $0.start(Flow("child").add(hold)) })
              .start(on: loop)
          }
        ),
        (
          "child that is stopped",
          { loop, made in
            let stubborn = Op(
              name: "StubbornOp", body: StubbornBody { $0.state = made })
            return Op("FailOp") { context in
              _ = context.start(stubborn)
              throw FlowError(.error, "\(loop.now())")
            }.start(on: loop)
          }
        ),
        (
          "leftovers",
          { loop, made in
            let stubborn = Op(
              name: "StubbornOp", body: StubbornBody { $0.state = made })
            return Flow("f").add(Op("StartOp") { _ = $0.start(stubborn) }).start(on: loop)
          }
        ),
      ]

  private static func hold(_ loop: FlowEventLoop, _ made: TestOpaque) -> Op {
    Op(
      name: "HoldOp",
      body: HoldingBody { context in
        context.defer { _ in _ = loop.now() }
        context.state = made
      })
  }

  @Test("A loop that is shut down releases everything pending", arguments: pending.indices)
  func aLoopThatIsShutDownLetsGoOfWhateverIsPending(_ index: Int) {
    let (name, start) = Self.pending[index]
    weak var gone: FlowEventLoop?
    weak var state: TestOpaque?
    do {
      let loop = makeLoop()
      gone = loop
      let made = TestOpaque(type: "x", base: "x")
      state = made
      let run = start(loop, made)
      #expect(run.state == .pending)
      loop.shutdown()
      #expect(loop.pendingRuns.isEmpty)
    }
    // Told by itself: the loop isn't shown when this fails.
    let (isLoopGone, isStateGone) = (gone == nil, state == nil)
    #expect(isLoopGone, "\(name)")
    #expect(isStateGone, "\(name)")
  }
}

/// Waits without end and ignores stops.
private final class StubbornBody: OpBody {
  private let take: (OpContext) -> Void

  init(_ take: @escaping (OpContext) -> Void) {
    self.take = take
  }

  func start(_ context: OpContext) -> CallState {
    take(context)
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {}
}
