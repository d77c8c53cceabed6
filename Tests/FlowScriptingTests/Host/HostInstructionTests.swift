import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Limits of instructions in a host of scripts")
struct HostInstructionTests {
  private static let limit = 1_000_000
  private static let message = "instruction limit of 1000000 exceeded"

  private func program(_ permissions: LuaPermissions = .restricted) throws -> ScriptProgram {
    try ScriptProgram(
      LuaConfiguration(permissions: permissions, instructionLimit: Self.limit))
  }

  private static let busy = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(error, function() while true do end end) end",
    "while true do pcall(coroutine.wrap(function() for i = 1, 200 do end end)) end",
    "local c <close> = setmetatable({}, { __close = function() while true do end end }) while true do end",
    "while true do flow.sleep(0.001) end",
    "while true do flow.spawn(function() end):await() end",
    "while true do flow.op('InnerOp', function() end):run() end",
  ]

  @Test("An op that executes more fails with an error of kind `instructions`", arguments: busy)
  func ops(_ body: String) throws {
    let program = try program()
    let run = try program.endedRun("return flow.op('BusyOp', function() \(body) end)")
    #expect(run.error?.kind == .instructions, "\(body)")
    #expect(run.error?.message == Self.message, "\(body)")
    program.vm.instructionLimit = Self.limit
    #expect(
      try program.text("return tostring(flow.op('NextOp', function() end):run().ok)") == "true")
  }

  @Test("Calls, tasks, callbacks, cleanups and machines end, too")
  func others() throws {
    let program = try program()
    let host = program.host
    let function = try program.load("while true do pcall(function() while true do end end) end")
    let called = #expect(throws: FlowError.self) {
      try host.call(function, deadline: .now.advanced(by: .seconds(3600)))
    }
    #expect(called?.kind == .instructions && called?.message == Self.message)
    program.vm.instructionLimit = Self.limit
    let raised = #expect(throws: LuaError.self) { try program.vm.call(function) }
    #expect(raised?.code == .instructions)
    #expect(raised.map { host.flowError(from: $0).kind } == .instructions)
    for code in [
      "flow.spawn(busy):await()",
      "flow.new('f'):will_start(busy):add(NoOp):run()",
      "flow.op('O', function(ctx) ctx:defer(busy) end):run()",
      "flow.resolved(1):next(busy):await()",
      "flow.new('f'):data { t = { 3, 1, 2 } }:add_grouped(flow.op('G', { primary_input = 'n', run = busy }), { input = 't' }):run()",
      "flow.op('R', { retry = { attempts = 3, when = busy }, run = error }):run()",
    ] {
      program.vm.instructionLimit = Self.limit
      let error = #expect(throws: LuaError.self) {
        try program.run(
          """
          local NoOp = flow.op("NoOp", function() end)
          local function busy() while true do pcall(function() while true do end end) end end
          \(code)
          while true do end
          """)
      }
      // The error of the task, or of the main chunk.
      #expect(error.map { host.flowError(from: $0).kind } == .instructions, "\(code)")
    }
  }

  @Test("A script that is run by one call ends")
  func run() async throws {
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(
        script: "while true do pcall(function() while true do end end) end",
        instructionLimit: Self.limit)
    }
    #expect(error?.kind == .instructions && error?.message == Self.message)
  }

  @Test("Each worker has a limit of its own, and may have no finalizers either")
  func workers() throws {
    let program = try program(.workers)
    let text = try program.text(
      """
      local function fail(run) return run.error.kind .. " " .. run.error.message end
      local BusyOp = flow.op("BusyOp", { thread = "worker", run = function()
        while true do pcall(function() while true do end end) end
      end })
      local FinalOp = flow.op("FinalOp", { thread = "worker", run = function()
        setmetatable({}, { __gc = function() end })
      end })
      return fail(FinalOp:run()) .. "; " .. fail(BusyOp:run())
      """)
    #expect(
      text
        == "error script.lua:6: finalizers (__gc) aren't allowed by the host of the script; instructions "
        + Self.message)
  }
}
