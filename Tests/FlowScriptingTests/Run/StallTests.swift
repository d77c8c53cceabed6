import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Waits that nothing can end")
struct StallTests {
  @Test("An op that waits for its own run fails, and the wait for it ends")
  func ownRun() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local run = flow.op("SelfOp", function(ctx) ctx.run:wait() end):run()
      return run.state .. " " .. run.error.kind .. " " .. run.error.op .. " " .. run.error.message
      """)
    #expect(text == "failed stalled SelfOp stalled: [SelfOp] never finished")
  }

  @Test("The stall is raised at the wait, where the op can see it")
  func raisedAtTheWait() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local caught
      local run = flow.op("SelfOp", function(ctx)
        caught = select(2, pcall(ctx.run.wait, ctx.run))
      end):run()
      return tostring(caught.kind) .. " " .. tostring(run.error)
      """)
    #expect(text == "stalled [SelfOp] stalled: [SelfOp] never finished")
  }

  @Test("Of two ops that wait for each other the younger fails, and the other continues")
  func eachOther() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local a, b
      a = flow.op("OldOp", function() flow.sleep(1) b:wait() end):start()
      b = flow.op("YoungOp", function() flow.sleep(1) a:wait() end):start()
      a:wait()
      return a.state .. " " .. b.state .. " " .. tostring(b.error)
      """)
    #expect(text == "succeeded failed [YoungOp] stalled: [YoungOp] never finished")
  }

  @Test("The error names the innermost op")
  func innermost() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local InnerOp = flow.op("InnerOp", function(ctx) ctx.run:wait() end)
      local OuterOp = flow.op("OuterOp", function() error(InnerOp:run().error) end)
      return flow.new("stuck"):add(flow.new("nested"):add(OuterOp)):run().error.message
      """)
    #expect(text == "stalled: [InnerOp] never finished")
  }

  @Test("A wait of the main chunk that no run can end is an error there, with its place")
  func mainChunk() throws {
    let program = try ScriptProgram()
    let never = try program.vm.makeFunction { call in try call.wait(LuaWait()) }
    let text = try program.text(
      "local ok, e = pcall(...) return e.kind .. ' ' .. tostring(e)", .reference(never))
    #expect(text == "stalled stalled: nothing can end this wait")
  }

  @Test("All stuck runs fail at the end of the script")
  func atTheEnd() throws {
    let program = try ScriptProgram()
    try program.run(
      """
      for i = 1, 5 do
        flow.op("SelfOp" .. i, function(ctx) flow.sleep(i) ctx.run:wait() end):start()
      end
      """)
    program.host.runToEnd()
    #expect(program.loop.pendingRuns.isEmpty)
    #expect(program.host.unobservedFailures().count == 5)
  }

  @Test("A Swift op that never ends doesn't keep the others from ending")
  func stubborn() throws {
    final class Endless: OpBody {
      func start(_ context: OpContext) -> CallState { .suspended }
      func cancel(_ context: OpContext, _ error: FlowError) {}
    }
    let program = try ScriptProgram()
    _ = Op(name: "EndlessOp", body: Endless()).start(on: program.loop)
    try program.run("flow.op('SelfOp', function(ctx) ctx.run:wait() end):start()")
    _ = Op(name: "EndlessOp", body: Endless()).start(on: program.loop)
    program.host.runToEnd()
    #expect(program.loop.pendingRuns.isEmpty)
    #expect(
      program.host.unobservedFailures().map(\.name).sorted() == [
        "EndlessOp", "EndlessOp", "SelfOp",
      ])
  }

  @Test("A wait in a C function can be stuck too")
  func acrossC() throws {
    let program = try ScriptProgram()
    let text = try program.text(
      """
      local run = flow.op("SortOp", function(ctx)
        table.sort({ 1, 2 }, function(a, b) ctx.run:wait() return a < b end)
      end):run()
      return run.state .. " " .. run.error.kind
      """)
    #expect(text == "failed stalled")
    #expect(
      try program.text("return flow.op('FineOp', function() flow.sleep(1) end):run().ok") == "true")
  }
}
