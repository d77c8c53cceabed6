import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("The identity of errors")
struct ErrorIdentityTests {
  private struct Token: Error, Equatable {
    let number: Int
  }

  @Test("A value that a script raises is the cause, and the very same value")
  func cause() throws {
    let program = try ScriptProgram()
    let verdict = try program.text(
      """
      local values = { {}, print, coroutine.create(print), io.stdout, 42, 4.5, "text", true, false,
        setmetatable({}, { __tostring = function() error "no text" end }) }
      for i = 1, #values do
        local run = flow.op("RaiseOp", function() error(values[i], 0) end):run()
        if not rawequal(run.error.cause, values[i]) then return i end
        if run.error.kind ~= "error" or run.error.op ~= "RaiseOp" then return -i end
      end
      local run = flow.op("RaiseOp", function() error(nil) end):run()
      if run.ok or run.error.cause ~= nil then return "nil" end
      return "same"
      """)
    #expect(verdict == "same")
  }

  @Test("An engine error that is raised again isn't wrapped, however deep")
  func raisedAgain() throws {
    let program = try ScriptProgram()
    let verdict = try program.text(
      """
      local first = flow.op("FirstOp", function(ctx) ctx:fail("no", { code = 7 }) end):run().error
      local op = flow.op("DeepOp0", function() error(first) end)
      for i = 1, 20 do
        local inner = op
        op = flow.op("DeepOp" .. i, function(ctx)
          if i % 3 == 0 then flow.sleep(1) end
          local run = inner:run()
          if i % 2 == 0 then error(run.error) else ctx:fail(run.error) end
        end)
      end
      local last = flow.new("deep"):add(op):run().error
      return tostring(rawequal(first, last)) .. last.code .. last.op
      """)
    #expect(verdict == "true7FirstOp")
  }

  @Test("A Swift error thrown in a function keeps its identity through Lua")
  func throughLua() throws {
    let program = try ScriptProgram()
    let thrower = try program.vm.makeFunction { call in
      throw Token(number: Int(call.integer(1) ?? 0))
    }
    try program.vm.setGlobal("throw", .reference(thrower))
    for number in 1...3 {
      #expect(throws: Token(number: number)) {
        try program.run("local ok, e = pcall(throw, ...) error(e)", .integer(Int64(number)))
      }
    }
    #expect(try program.text("return tostring(select(2, pcall(throw, 9)))").contains("9"))
  }

  @Test("A Swift error thrown in an op of a script fails it with the error's text")
  func inAnOp() throws {
    let program = try ScriptProgram()
    let thrower = try program.vm.makeFunction { _ in throw Token(number: 5) }
    let text = try program.text(
      "local f = ... return flow.op('ThrowOp', function() f() end):run().error.message",
      .reference(thrower))
    #expect(text.contains("Token(number: 5)"))
  }

  @Test("A script's error reaches Swift with its value and returns unchanged")
  func toSwiftAndBack() throws {
    let program = try ScriptProgram()
    let raiser = try program.load("local value = ... error(value)")
    let value = LuaValue.reference(try program.vm.makeTable())
    do {
      _ = try program.vm.call(raiser, [value])
      Issue.record("nothing was raised")
    } catch let error as LuaError {
      let raised = try #require(error.value)
      #expect(try program.text("local a, b = ... return rawequal(a, b)", value, raised) == "true")
    }
  }

  @Test("The error of a run is always the same table")
  func oneTable() throws {
    let program = try ScriptProgram()
    let verdict = try program.text(
      """
      local seen
      local run = flow.new("one"):did_finish(function(run) seen = run.error end)
        :add(flow.op("NeedOp", { needs = { x = "string" }, run = print })):run()
      local tables = flow.op("GetOp", function(ctx)
        local ok, caught = pcall(ctx.get, ctx, "nothing")
        seen = caught
        error(caught)
      end):run()
      return tostring(run.error == run.error) .. tostring(rawequal(tables.error, seen))
      """)
    #expect(verdict == "truetrue")
  }

  @Test(
    "The error that a Swift op throws comes out as the same error",
    arguments: [
      "error(failing:run().error)",
      "failing:start():await()",
      "local ok, e = pcall(function() failing:start():await() end) error(e)",
      "flow.new('inner'):add(failing):start():await()",
      "local run = flow.new('group'):add_grouped(failing, { input = 'list', as = 'x' })"
        + ":run { list = { 1, 2 } } error(run.error, 0)",
      "flow.when_all_succeed { failing:start() }:await()",
      "failing:start():next(function(task) error(task.error) end):await()",
      "ctx:fail(failing:run().error)",
      "return failing:start()",
      "coroutine.wrap(function() failing:start():await() end)()",
      "throwing()",
      "local ok, e = pcall(throwing) error(e)",
    ])
  func outOfSwiftOps(body: String) throws {
    let program = try ScriptProgram()
    let failing = Op("FailingOp") { _ in throw Token(number: 3) }.with(
      retry: RetryPolicy(attempts: 2))
    let throwing = try program.vm.makeFunction { _ in throw Token(number: 3) }
    let results = try program.run(
      """
      local failing, throwing = ...
      return flow.new("outer"):add(flow.op("LuaOp", function(ctx) \(body) end))
      """, program.host.value(of: failing), .reference(throwing))
    let op = try #require(results.first.flatMap { program.host.op(in: $0) })
    let run = op.start(on: program.loop)
    try run.waitUntilEnd()
    #expect(run.error?.underlying as? Token == Token(number: 3))
  }

  @Test(
    "The error that a Swift op throws survives workers",
    arguments: [
      "failing:start():next(function(task) error(task.error) end, { thread = 'worker' }):await()",
      "failing:start():next_on_error(function(e) error(e) end, { thread = 'worker' }):await()",
      "failing:start():finally(function() end, { thread = 'worker' }):await()",
      "failing:start():next(function(task) local ok, e = pcall(error, task.error) error(e) end, "
        + "{ thread = 'worker' }):await()",
    ])
  func throughWorkers(body: String) throws {
    let program = try ScriptProgram()
    let failing = Op("FailingOp") { _ in throw Token(number: 3) }
    let results = try program.run(
      """
      local failing = ...
      return flow.op("LuaOp", function(ctx) \(body) end)
      """, program.host.value(of: failing))
    let op = try #require(results.first.flatMap { program.host.op(in: $0) })
    let run = op.start(on: program.loop)
    try run.waitUntilEnd()
    #expect(run.error?.underlying as? Token == Token(number: 3))
    #expect(run.error?.op == "FailingOp")
  }

  @Test("A value that can't come from a worker is the cause of the error, for Swift, too")
  func unencodable() throws {
    let program = try ScriptProgram()
    let results = try program.run(
      """
      return flow.op("WorkOp", { thread = "worker", gives = { f = "any" },
        run = function(ctx) ctx:set("f", coroutine.create(print)) end })
      """)
    let op = try #require(results.first.flatMap { program.host.op(in: $0) })
    let run = op.start(on: program.loop)
    try run.waitUntilEnd()
    #expect(run.error?.message.description.contains("coroutine") == true)
  }

  @Test("The error of a run that ends a chunk can be read from Lua's error")
  func outOfChunks() throws {
    let program = try ScriptProgram()
    let failing = Op("FailingOp") { _ in throw Token(number: 3) }
    let value = try program.host.value(of: failing)
    let thrown = #expect(throws: LuaError.self) {
      try program.run("(...):start():await()", value)
    }
    let error = program.host.flowError(from: try #require(thrown))
    #expect(error.underlying as? Token == Token(number: 3))
    #expect(error.op == "FailingOp")
    let raised = #expect(throws: LuaError.self) { try program.run("error 'no paper'") }
    #expect(
      program.host.flowError(from: try #require(raised)).message == "script.lua:1: no paper")
    #expect(program.host.flowError(from: Token(number: 4)).underlying as? Token == Token(number: 4))
  }

  @Test("Of a table that another state has raised, the message is known")
  func otherState() throws {
    let (program, other) = (try ScriptProgram(), try ScriptProgram())
    let raised = #expect(throws: LuaError.self) {
      try other.run("error(setmetatable({}, { __tostring = function() return 'no paper' end }))")
    }
    let foreign = try #require(raised)
    #expect(program.host.flowError(from: foreign).message.contains("no paper"))
    let run = Op("FailingOp") { _ in throw foreign }.start(on: program.loop)
    try run.waitUntilEnd()
    #expect(run.error?.message.contains("no paper") == true)
  }
}
