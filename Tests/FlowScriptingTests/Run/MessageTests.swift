import FlowEngine
import FlowScripting
import Testing

@Suite("Messages from Swift")
struct MessageTests {
  private let program: ScriptProgram
  private let run: Run

  init() throws {
    program = try ScriptProgram()
    let value = try program.run(
      """
      local AskOp = flow.op("AskOp", function(ctx)
        local seen = {}
        for i = 1, 3 do seen[i] = ctx:wait_for("n", { type = "integer" }) end
        ctx:set("seen", table.concat(seen, " "))
        ctx:set("word", ctx:wait_for "word")
      end)
      return flow.new("ask"):add(AskOp):start()
      """)
    run = try #require(program.host.startedRun(in: value[0]))
  }

  @Test("A run takes messages in their order, each once, and drops those of another type")
  func order() throws {
    try run.send("word", "first")
    for value in [.integer(1), "no", .integer(2), .integer(3)] as [FlowValue] {
      #expect(run.state == .pending)
      try run.send("n", value)
    }
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.data.string("seen") == "1 2 3")
    #expect(run.data.string("word") == "first")
    #expect(run.summary().contains("[AskOp] Dropped message <n>: integer expected, got no"))
  }

  @Test("A run that has ended takes no message")
  func ended() throws {
    run.cancel()
    _ = try? run.wait()
    let error = #expect(throws: FlowError.self) { try run.send("n", .integer(1)) }
    #expect(error?.kind == .usage)
    #expect(error?.message == "the run 'ask' has ended")
  }
}
