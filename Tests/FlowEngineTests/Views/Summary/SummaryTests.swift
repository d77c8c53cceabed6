import FlowEngine
import Testing

/// Every line of a summary, word for word.
@Suite("Summaries and events")
struct SummaryTests {
  @Test("Each kind of error has its line")
  func eachKindOfErrorHasItsLine() {
    let number = FlowValue.integer(123_456)
    let cases: [(FlowError, String, String)] = [
      (FlowError(.error, "no luck"), "withError: no luck", "no luck"),
      (.usage("a.lua:1: bad"), "withError: a.lua:1: bad", "a.lua:1: bad"),
      (
        .missingInput("email"), "withInsufficientInputData: can't find <email> in data bucket",
        "can't find <email> in data bucket"
      ),
      (
        .mismatchedInput("password", number, wanted: "string"),
        """
        withMismatchInputDataType: <password> in data bucket is <123456> with type <integer>, \
        but NOT type <string>.
        """,
        "<password> in data bucket is <123456> with type <integer>, but NOT type <string>."
      ),
      (
        .missingOutput("url"), "withMissingOutputData: can't find <url> in data bucket",
        "can't find <url> in data bucket"
      ),
      (
        .mismatchedOutput("password", number, wanted: "string"),
        """
        withMismatchOutputDataType: <password> in data bucket is <123456> with type <integer>, \
        but NOT type <string>.
        """,
        "<password> in data bucket is <123456> with type <integer>, but NOT type <string>."
      ),
      (.timeout(after: .seconds(5)), "timedOut after 5s", "timed out after 5s"),
      (.timeout(after: .seconds(0.25)), "timedOut after 0.25s", "timed out after 0.25s"),
      (.timeout(after: .seconds(1e7)), "timedOut after 1e+07s", "timed out after 1e+07s"),
      (.cancelled(), "cancelled", "cancelled"),
      (.cancelled(reason: "group failed"), "cancelled: group failed", "cancelled: group failed"),
      (
        .stalled(op: "AnOp"), "withError: stalled: [AnOp] never finished",
        "stalled: [AnOp] never finished"
      ),
    ]
    for (error, line, message) in cases {
      let run = Op("AnOp") { $0.fail(error) }.start(on: makeLoop())
      #expect(body(run) == ["[AnOp] WillStart", "[AnOp] DidFinish: \(line)"])
      #expect(run.error?.message.description == message)
      #expect(run.events.filter { $0.kind == .finish }.last?.message?.description == line)
    }
  }

  @Test("A message is on one line, and its event keeps its newlines")
  func aMessageIsOnOneLine() {
    let run = Op("LogOp") { $0.log("first\nsecond\n") }.start(on: makeLoop())
    #expect(
      run.summary().description.contains(
        "\n12:00:00 AM [LogOp] first\\nsecond\\n\n12:00:00 AM"))
    #expect(run.events.contains { $0.message == "first\nsecond\n" })
  }

  @Test("A pending run has no outcome and no final data")
  func aPendingRunHasNoOutcomeAndNoDataOfTheEnd() throws {
    let loop = makeLoop()
    let run = waitingOp("SlowOp").start(on: loop, data: InitialData([("a", .integer(1))]))
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        a: 1
        12:00:00 AM [SlowOp] WillStart
        ======    Ending    ======

        """)
    try run.waitUntilEnd()
  }

  @Test("Events have the fields of their kind")
  func eventsTellWhatTheirKindHas() {
    let op = Op("SetOp") { context in
      context.set("y", 1)
      context.set("y", 2.5)
      context.set("y", FlowValue.null)
    }
    let run = op.start(on: makeLoop())
    let shown = run.events.map { event in
      [event.kind.name, event.key, event.value, event.oldValue, event.message]
        .compactMap { $0?.description }.joined(separator: " ")
    }
    #expect(shown == ["start", "set y 1", "replace y 2.5 1", "remove y", "finish successfully"])
    #expect(run.events.allSatisfy { $0.done == nil && $0.total == nil && $0.index == 0 })
  }

  @Test("Kinds of events have the names that scripts use")
  func kindsHaveTheNamesThatScriptsUse() {
    #expect(
      RunEvent.Kind.allCases.map(\.name.description).joined(separator: " ")
        == "start finish log set replace remove retry group case transition state progress "
        + "program_start program request_start request wait undo undo_start kept")
  }
}
