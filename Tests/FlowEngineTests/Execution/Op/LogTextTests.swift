import FlowEngine
import Testing

@Suite("Texts of the log")
struct LogTextTests {
  private struct NoteOp: TypedOp {
    let text: String

    func run(_ data: OpData<Self>) { data.log(text) }
  }

  @Test("Strings are logged as they are, besides literals")
  func stringsAreLogged() {
    let loop = makeLoop()
    let text = ["a", "b"].joined(separator: "-")
    let run = Flow()
      .add(Op("TextOp") { $0.log(text) })
      .add(Op("LiteralOp") { $0.log("c \(text)") })
      .add(NoteOp(text: text))
      .add(PrintOp(text))
      .start(on: loop)
    #expect(
      body(run).filter { $0.contains("a-b") } == [
        "[TextOp] a-b", "[LiteralOp] c a-b", "[NoteOp] a-b", "[PrintOp] a-b",
      ])
  }
}
