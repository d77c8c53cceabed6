import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Errors of kind `memory`")
struct MemoryKindTests {
  private func program() throws -> ScriptProgram {
    try ScriptProgram(LuaConfiguration(memoryLimit: 8_000_000))
  }

  /// Code that needs more than the limit.
  private static let greedy = [
    "return ('x'):rep(1 << 30)",
    "local t = {} while true do t[#t + 1] = { t } end",
    "local s = 'x' while true do s = s .. s end",
    "coroutine.wrap(function() local t = {} while true do t[#t + 1] = { t } end end)()",
    "ctx:set('a', ('x'):rep(3000000)) ctx:set('b', ('y'):rep(3000000))",
    "local ok, e = pcall(string.rep, 'x', 1 << 30) error(e, 0)",
    "flow.spawn(function() return ('x'):rep(1 << 30) end):await()",
    "error(flow.op('InnerOp', function() return ('x'):rep(1 << 30) end):run().error)",
  ]

  @Test(
    "An op that needs more memory than there is fails with it, and its line stays",
    arguments: greedy)
  func ops(_ code: String) throws {
    let program = try program()
    let text = try program.text(
      """
      local run = flow.op("GreedyOp", { gives = {}, run = function(ctx) \(code) end }):run()
      return run.error.kind .. " " .. run.error.message .. " " .. run:summary():match("withError[^\\n]*")
      """)
    #expect(text == "memory not enough memory withError: not enough memory", "\(code)")
  }

  @Test("So do tasks, callbacks and calls from Swift")
  func others() throws {
    let program = try program()
    let kinds = try program.text(
      """
      local kinds = {}
      local function greedy() return ("x"):rep(1 << 30) end
      local task = flow.spawn(greedy)
      pcall(task.await, task)
      kinds[1] = task.error.kind
      local NoOp = flow.op("NoOp", function() end)
      kinds[2] = flow.new("f"):will_start(greedy):add(NoOp):run().error.kind
      kinds[3] = NoOp:with { undo = greedy }:run().ok
      local next = flow.resolved(1):next(greedy)
      pcall(next.await, next)
      kinds[4] = next.error.kind
      return ("%s %s %s %s"):format(table.unpack(kinds))
      """)
    #expect(kinds == "memory memory true memory")
    let function = try program.vm.load("return ('x'):rep(1 << 30)", name: "f")
    let error = #expect(throws: FlowError.self) {
      try program.host.call(function, deadline: .now.advanced(by: .seconds(3600)))
    }
    #expect(error?.kind == .memory)
    let raised = #expect(throws: LuaError.self) { try program.vm.call(function) }
    #expect(raised.map { program.host.flowError(from: $0).kind } == .memory)
    #expect(FlowError.from(LuaError(.memory, "not enough memory")).kind == .memory)
  }

  @Test("Another error that only mentions memory is one of kind `error`")
  func anotherError() throws {
    let text = try program().text(
      """
      return flow.op("FailingOp", function() error("the server: not enough memory") end):run().error.kind
      """)
    #expect(text == "error")
  }

  @Test("An op without memory is tried again")
  func retries() throws {
    let text = try program().text(
      """
      local attempts = 0
      local run = flow.op("GreedyOp", { retry = 3, run = function()
        attempts = attempts + 1
        if attempts < 3 then return ("x"):rep(1 << 30) end
      end }):run()
      return tostring(run.ok) .. " " .. attempts
      """)
    #expect(text == "true 3")
  }
}
