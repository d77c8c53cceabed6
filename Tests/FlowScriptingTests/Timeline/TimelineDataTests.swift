import FlowEngine
@_spi(Scripting) import LuaVM
import Testing

@testable import FlowScripting

@Suite("Data of timeline pages")
struct TimelineDataTests {
  /// A run of 1,000 items; one fails, one is retried, and one is slow.
  private func run() throws -> Run {
    var isRetried = false
    let op = Op("ItemOp") { context in
      if context.index == 300 {
        context.fail(FlowError(.error, "no luck").with { $0.isTransient = false })
      }
      if context.index == 500, !isRetried {
        isRetried = true
        context.fail(FlowError(.error, "not yet"))
      }
    }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(0.001)))
    let list = (1...1000).map { Int64($0) }
    let flow = Flow("many").data("list", list.flowValue)
      .addGrouped(op, GroupDispatcher(input: "list", allowFailure: true, as: "x"))
    let run = flow.start(on: FlowEventLoop(clock: VirtualClock()))
    try run.waitUntilEnd()
    run.markObserved()
    return run
  }

  private func text(_ data: TimelineData) -> String {
    var text = JSONText()
    data.append(to: &text, place: "", keptRun: nil, summary: "")
    return String(decoding: text.bytes, as: UTF8.self)
  }

  @Test("Of a long log the summary has the start and the end")
  func excerpt() throws {
    let run = try run()
    let whole = run.summary()
    #expect(run.summaryExcerpt(most: 1_000_000) == whole)
    let excerpt = run.summaryExcerpt(most: 20).description
    let lines = excerpt.split(separator: "\n")
    #expect(lines.count < 60)
    #expect(lines.contains { $0.hasSuffix("records of the log are left out here …") })
    #expect(lines.first == "====== Flow Summary ======")
    #expect(excerpt.contains("[ItemOp #1] WillStart"))
    #expect(whole.description.hasSuffix(lines.suffix(4).joined(separator: "\n") + "\n"))
  }

  @Test("Of too many spans the page has what is conspicuous and a sample, and the numbers of all")
  func choice() throws {
    let run = try run()
    let spans = RunSpans(run)
    let all = text(TimelineData(spans))
    #expect(all.contains(#""omitted":0}"#))
    let some = text(TimelineData(spans, mostSpans: 100))
    #expect(some.contains(#""ops":1000,"failed":1,"repeated":"#))
    #expect(some.contains("no luck"))
    #expect(some.contains("not yet"))
    // Both are among the spans, though most of the others take equally long.
    #expect(!some.contains(#","span":-1"#))
    let omitted = try #require(some.firstRange(of: #""omitted":"#)).upperBound
    let count = Int(some[omitted...].prefix { $0.isNumber }) ?? 0
    #expect(count >= 850 && count < 1000)
    #expect(some.utf8.count < all.utf8.count / 3)
  }
}
