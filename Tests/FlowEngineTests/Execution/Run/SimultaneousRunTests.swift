import FlowEngine
import Testing

@Suite("Simultaneous runs")
struct SimultaneousRunTests {
  @Test("Simultaneous runs of one blueprint are independent")
  func runsOfOneBlueprintAtTheSameTimeKnowNothingOfEachOther() throws {
    let loop = makeLoop()
    let inner = Flow("inner")
      .case("kind", "slow").add(waitingOp("SlowOp", 9)).case("kind", "bad").add(failing("BadOp"))
      .otherwise().add(waitingOp("FineOp", 1)).combine()
      .addFinally(waitingOp("CloseOp", 0.5))
    let flow = Flow("top").add(
      inner.with(retry: RetryPolicy(attempts: 2, delay: .seconds(1)), timeout: .seconds(3))
    )
    .addParallel(waitingOp("LeftOp"), waitingOp("RightOp"))
    let kinds: [ByteString] = ["slow", "bad", "fine", "cancelled"]
    let runs = (0..<40).map { index in
      flow.start(
        on: loop,
        data: InitialData([("kind", .bytes(kinds[index % 4])), ("n", .integer(Int64(index)))]))
    }
    loop.schedule(at: 500_000_000) {
      for index in stride(from: 3, to: 40, by: 4) { runs[index].cancel() }
    }
    for run in runs { try run.waitUntilEnd() }
    for (index, run) in runs.enumerated() {
      run.markObserved()
      let alone = flow.start(
        on: loop,
        data: InitialData([("kind", .bytes(kinds[index % 4])), ("n", .integer(Int64(index)))]))
      if index % 4 == 3 {
        loop.schedule(after: .seconds(0.5)) { alone.cancel() }
      }
      try alone.waitUntilEnd()
      alone.markObserved()
      #expect(lines(run) == lines(alone))
      #expect(run.duration == alone.duration)
    }
    #expect(Set(runs.map(\.state)) == [.failed, .succeeded, .cancelled])
  }
}
