import FlowEngine
import Testing

@testable import FlowScripting

@Suite("Choice of the runs of a timeline page")
struct TimelineChoiceTests {
  /// 30 runs: each of so many items as its place, the last one fails, and the seventh takes long.
  private func entries() throws -> [TimelinePage.Entry] {
    let loop = FlowEventLoop(clock: VirtualClock())
    var entries: [TimelinePage.Entry] = []
    for number in 1...30 {
      let op = Op("ItemOp") { context in
        if number == 30 { context.fail(FlowError(.error, "no luck")) }
      }
      let list = (1...number).map { Int64($0) }
      let flow = Flow("many").data("list", list.flowValue)
        .addGrouped(op, GroupDispatcher(input: "list", as: "x"))
      if number == 7 {
        flow.add(
          Op("WaitOp") { context in
            if context.attempt == 1 { context.fail(FlowError(.error, "not yet")) }
          }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(5))))
      }
      let run = flow.start(on: loop)
      try? run.waitUntilEnd()
      run.markObserved()
      entries.append(TimelinePage.Entry(run))
    }
    return entries
  }

  @Test("Few runs are all there, with all of their spans")
  func few() throws {
    let all = try entries()
    let choice = TimelineChoice(all)
    #expect(choice.runs == Array(0..<30))
    #expect(choice.mostSpans == all.map(\.spans.spans.count))
    #expect(choice.mostSummary == all.map(\.summary.bytes.count))
  }

  @Test("Of too many runs failures, the longest and a sample are there, in their order")
  func many() throws {
    let choice = TimelineChoice(try entries(), mostRuns: 9)
    #expect(choice.runs.count == 9)
    #expect(choice.runs == choice.runs.sorted())
    #expect(choice.runs.contains(6))
    #expect(choice.runs.contains(29))
  }

  @Test("Spans are shared: small runs keep theirs, and large ones have equal parts")
  func shares() throws {
    let all = try entries()
    let choice = TimelineChoice(all, mostSpans: 200)
    #expect(choice.mostSpans.reduce(0, +) == 200)
    #expect(choice.mostSpans[0] == all[0].spans.spans.count)
    #expect(choice.mostSpans[20] < all[20].spans.spans.count)
    #expect(choice.mostSpans.max().map { $0 - choice.mostSpans[20] } ?? 9 <= 1)
  }

  @Test("Of a long summary the start and the end are there, as whole lines")
  func excerpt() {
    let text = ByteString((1...100).map { "line \($0)\n" }.joined())
    #expect(TimelineChoice.excerpt(of: text, most: 10_000) == text)
    let lines = TimelineChoice.excerpt(of: text, most: 60).description.split(separator: "\n")
    #expect(lines.first == "line 1")
    #expect(lines.last == "line 100")
    #expect(lines.filter { $0.hasSuffix("bytes are left out here …") }.count == 1)
    #expect(lines.allSatisfy { $0.hasPrefix("line ") || $0.hasPrefix("… ") })
    #expect(TimelineChoice.excerpt(of: "one line", most: 4) == "… 8 bytes are left out here …\n")
  }
}
