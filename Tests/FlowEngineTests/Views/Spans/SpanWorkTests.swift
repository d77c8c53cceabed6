import FlowEngine
import Testing

@Suite("Programs in the spans of runs")
struct SpanWorkTests {
  @Test("Each program is a work of its op, and stands in a row of its own beside others")
  func programsAreWorksOfTheirOp() throws {
    let loop = FlowEventLoop()
    let flow = Flow("publish").add(ExecOp("echo", "a b"))
      .addParallel(ExecOp("true"), ExecOp("true"))
      .add(ExecOp("sh", "-c", "exit 3"))
    let run = flow.start(on: loop)
    try run.waitUntilEnd()
    run.markObserved()
    let spans = RunSpans(run)
    let lines = spans.works.map { work in
      let parent = spans.path(of: spans.spans[Int(work.parent)])
      return "\(parent): \(work.work.title) \(work.work.status ?? -1) \(work.work.outcome)"
    }
    #expect(
      lines == [
        "publish/ExecOp: echo 'a b' 0 succeeded", "publish/ExecOp: true 0 succeeded",
        "publish/ExecOp: true 0 succeeded",
        "publish/ExecOp: sh -c 'exit 3' 3 failed",
      ])
    #expect(spans.works.allSatisfy { $0.start <= $0.end })
    let rows = SpanRows(spans)
    #expect(rows.rowOfWork.count == 4)
    #expect(rows.rowOfWork[0] == rows.rowOfSpan[0])
    #expect(run.events.filter { $0.kind == .program }.count == 4)
    #expect(!run.summary().description.contains("echo"))
    loop.shutdown()
  }

  @Test("A record keeps all of a work")
  func aRecordKeepsAllOfAWork() throws {
    let log = Op("LogOp") { _ in }.start(on: FlowEventLoop()).log
    let place = WorkPlace(log, scope: 0, position: .max, attempt: 2, trace: nil)
    let error = FlowError(.http, "404 Not Found")
    place.append(
      LoggedWork(
        .request, "https://x.example/a", error: error, method: "GET", status: 404, byteCount: 12),
      from: 5, to: 9)
    place.append(
      LoggedWork(.program, "/bin/kill -9 '…'", error: nil, status: 137, signal: 9, process: 77),
      from: 9, to: 9)
    let events = log.events.compactMap(\.work)
    #expect(events.count == 2)
    let (request, program) = (try #require(events.first), try #require(events.last))
    #expect(request.title == "GET https://x.example/a")
    #expect(request.name == "GET")
    #expect(request.status == 404 && request.byteCount == 12 && request.signal == nil)
    #expect(request.duration == 4 && request.outcome == .failed)
    #expect(request.error == "404 Not Found" && request.errorKind == "http")
    #expect(program.name == "kill" && program.title == "/bin/kill -9 '…'")
    #expect(program.status == 137 && program.signal == 9 && program.process == 77)
    #expect(program.outcome == .succeeded && program.error == nil && program.byteCount == nil)
  }
}
