import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("The cost of caught errors")
struct ErrorBalanceTests {
  /// One function or method of the API: how to call it, given `call(f, self, wrong)`.
  struct Misuse: CustomTestStringConvertible, Sendable {
    let name: String
    /// The function, as an expression over `o`, the objects.
    let function: String
    /// The `self` of a method, as an expression; nil for plain functions.
    let receiver: String?
    /// Lists of wrong arguments.
    let wrong: String

    var testDescription: String { name }

    init(_ name: String, _ function: String, of receiver: String? = nil, _ wrong: String) {
      self.name = name
      self.function = function
      self.receiver = receiver
      self.wrong = wrong
    }
  }

  static let dispatchers = """
    {{}}, {{ input = 1 }}, {{ input = "l", max_concurrent = 0/0 }}, {{ input = "l", nothing = 1 }},
    {{ input = "l", inptu = 1 }}, {{ [{}] = 1 }}, {{ input = "l", as = {} }}, {1}, {}
    """

  static let all = [
    Misuse(
      "flow.op", "flow.op",
      """
      {}, {nil, print}, {"", print}, {"A"}, {"A", 1}, {"A", {}}, {"A", { run = 1 }},
      {"A", { run = print, ned = 1 }}, {"A", { run = print, needs = { a = "strng" } }},
      {"A", { run = print, gives = { 1 } }}, {"A", { run = print, retry = 0 }},
      {"A", { run = print, retry = "3" }}, {"A", { run = print, retry = {} }},
      {"A", { run = print, retry = { attempts = 2, delay = -1 } }}, {"A", { run = print, timeout = 0 }},
      {"A", { run = print, thread = "elsewhere" }}
      """),
    Misuse("flow.new", "flow.new", "{}, {nil}, {''}, {{}}, {1}, {io.stdout}"),
    Misuse("flow.dispatcher", "flow.dispatcher", dispatchers),
    Misuse("flow.sleep", "flow.sleep", "{}, {nil}, {-1}, {0/0}, {1/0}, {'1'}, {{}}"),
    Misuse(
      "flow.machine", "flow.machine",
      """
      {}, {1}, {{}}, {{ name = "m" }}, {{ name = "m", start = "a" }}, {{ name = "m", start = "a", 1 }},
      {{ name = "m", start = "b", o.step }}, {{ name = "m", start = "a", o.step, o.step }},
      {{ name = "m", start = "a", emit = 1, o.step }}, {{ name = "m", start = "a", nme = 1 }},
      {{ name = "m", start = "a", emit = print, transition = print, o.step }},
      {{ name = "m", start = "a", retry = 0, o.step }}, {{ name = "m", start = "a", nil, o.step }}
      """),
    Misuse(
      "flow.step", "flow.step",
      "{}, {1}, {'a'}, {'a', { run = 1 }}, {'a', { rn = 1 }}, {'a', { 1 }}, {'', {}}"),
    Misuse("flow.any_step", "flow.any_step", "{}, {{ run = print }}, {{ 1 }}, {'a', {}}"),
    Misuse("flow.on", "flow.on", "{}, {'e'}, {1, flow.stay()}, {'e', {}}, {'e', { kind = {} }}"),
    Misuse("flow.next", "flow.next", "{}, {1}, {{}}, {{ kind = 'forward' }}"),
    Misuse("flow.forward", "flow.forward", "{}, {1}, {''}, {{}}"),
    Misuse("flow.back", "flow.back", "{1}, {''}, {{}}"),
    Misuse("machine()", "debug.getmetatable(o.machine).__call", of: "o.machine", "{}, {1}"),
    Misuse("machine:continue", "o.machine.continue", of: "o.machine", "{}, {1}, {'b'}, {{}, 1}"),
    Misuse(
      "machine:dot", "o.machine.dot", of: "o.machine",
      "{1}, {{ rankdir = 'x' }}, {{ shape = '' }}, {{ strict = 1 }}, {{ strct = true }}"),
    Misuse("op()", "debug.getmetatable(o.op).__call", of: "o.swift", "{}, {1}"),
    Misuse("op:start", "o.op.start", of: "o.op", "{1}, {{1}}, {'x'}, {o.flow}"),
    Misuse("op:run", "o.op.run", of: "o.op", "{1}, {{1}}, {'x'}, {o.flow}"),
    Misuse(
      "op:with", "o.op.with", of: "o.op",
      "{}, {1}, {{ nme = 'x' }}, {{ name = '' }}, {{ timeout = 0/0 }}, {{ retry = 1.5 }}"),
    Misuse("op.x =", "function(op) op.x = 1 end", of: nil, "{o.op}"),
    Misuse("flow:data", "o.flow.data", of: "o.flow", "{}, {nil}, {1}, {{1}}, {{[{}] = 1}}"),
    Misuse("flow:needs", "o.flow.needs", of: "o.flow", "{}, {1}, {{a = 1}}, {{a = 'x|'}}, {{1}}"),
    Misuse(
      "flow:add", "o.flow.add", of: "o.flow",
      "{}, {1}, {print}, {o.flow}, {o.op, 1}, {o.op, { timeot = 1 }}, {o.run}"),
    Misuse("flow:add_parallel", "o.flow.add_parallel", of: "o.flow", "{}, {1}, {o.op, o.flow}"),
    Misuse("flow:add_finally", "o.flow.add_finally", of: "o.flow", "{}, {1}, {o.flow}, {o.op, 1}"),
    Misuse(
      "flow:add_grouped", "o.flow.add_grouped", of: "o.flow",
      """
      {}, {1}, {o.op}, {o.op, 1}, {o.op, {}}, {o.op, { input = "l" }}, {o.op, { inptu = "l" }},
      {o.op, o.forged}, {o.flow, o.dispatcher}, {o.op, { input = "l", as = "x", output = "y" }}
      """),
    Misuse("flow:will_start", "o.flow.will_start", of: "o.flow", "{}, {1}, {{}}, {o.op}"),
    Misuse("flow:did_finish", "o.flow.did_finish", of: "o.flow", "{}, {1}, {{}}, {o.op}"),
    Misuse("flow:copy", "o.flow.copy", of: nil, "{}, {o.op}, {io.stdout}"),
    Misuse("flow:start", "o.flow.start", of: "o.flow", "{1}, {{1}}"),
    Misuse("flow:run", "o.flow.run", of: "o.flow", "{1}, {{1}}"),
    Misuse(
      "flow:case", "o.flow.case", of: "o.flow", "{}, {1}, {'k'}, {'k', 1}, {print, 1}, {{}}"),
    Misuse("flow:otherwise", "o.flow.otherwise", of: "o.flow", "{}"),
    Misuse("flow:combine", "o.flow.combine", of: "o.flow", "{}"),
    Misuse("run:wait", "o.run.wait", of: "o.run", "{-1}, {0/0}, {'1'}, {{}}"),
    Misuse("run:summary", "o.run.summary", of: "o.run", "{1}, {{tiem = 1}}, {{time = 'x'}}, {{1}}"),
    Misuse("run:events", "o.run.events", of: nil, "{}, {o.op}, {io.stdout}"),
    Misuse("run:next", "function(run) run:next(1) end", of: nil, "{o.run}"),
    Misuse("run:await", "o.run.await", of: nil, "{}, {o.op}, {io.stdout}"),
    Misuse("run:cancel", "o.run.cancel", of: "o.run", "{{}}, {print}"),
    Misuse(
      "flow.exec", "flow.exec",
      """
      {}, {1}, {{}}, {{""}}, {{"a", {}}}, {{"a", x = 1}}, {{"a\\0b"}}, {{"true"}, 1},
      {{"true"}, { chek = 1 }}, {{"true"}, { stdin = 1 }}, {{"true"}, { cwd = "\\0" }},
      {{"true"}, { env = { A = 1 } }}, {{"true"}, { timeout = 0/0 }}, {{"true"}, { check = 1 }}
      """),
    Misuse("ctx:get", "o.ctx.get", of: "o.ctx", "{}, {1}, {'x', 1}, {'x', 'strng'}, {'x', {}}"),
    Misuse("ctx:set", "o.ctx.set", of: "o.ctx", "{}, {1, 1}, {nil, 1}, {{}, 1}"),
    Misuse("ctx:has", "o.ctx.has", of: "o.ctx", "{}, {1}, {{}}"),
    Misuse("ctx:log", "o.ctx.log", of: nil, "{}, {nil, 1}, {o.finished, 'x'}, {io.stdout}"),
    Misuse(
      "ctx:fail", "o.ctx.fail", of: "o.ctx",
      "{}, {{}}, {true}, {'m', 1}, {'m', {kind = 1}}, {'m', {1}}"),
    Misuse("ctx:defer", "o.ctx.defer", of: "o.ctx", "{}, {1}, {{}}"),
    Misuse("ctx:progress", "o.ctx.progress", of: "o.ctx", "{}, {-1}, {0/0}, {1, 'x'}, {1, -1}"),
    Misuse(
      "tostring", "debug.getmetatable(o.op).__tostring", of: nil, "{}, {nil}, {{}}, {io.stdout}"),
  ]

  // The release binary does the same a hundred thousand times: Tests/scripts/fuzz/many_errors.lua.
  @Test("Hundreds of caught errors of each function leak no memory", arguments: all)
  func balanced(_ misuse: Misuse) throws {
    let program = try ScriptProgram()
    let swift = try program.host.value(of: Op("SwiftOp") { _ in })
    let chunk = try program.load(
      """
      local swift = ...
      local outcome
      local o = { op = flow.op("AnOp", function() end), flow = flow.new("aFlow"), swift = swift,
        dispatcher = flow.dispatcher { input = "list" } }
      o.run = flow.op("RunOp", function(ctx) o.finished = ctx end):run()
      o.step = flow.step("a", { run = print })
      o.machine = flow.machine { name = "m", start = "a", o.step }
      o.forged = debug.setmetatable(io.tmpfile(), debug.getmetatable(o.dispatcher))
      local run = flow.op("CtxOp", function(ctx)
        o.ctx = ctx
        local f, receiver, wrong = \(misuse.function), \(misuse.receiver ?? "nil"), { \(misuse.wrong) }
        local calls = {}
        for _, arguments in ipairs(wrong) do
          calls[#calls + 1] = receiver
            and function() f(receiver, table.unpack(arguments, 1, 2)) end
            or function() f(table.unpack(arguments, 1, 2)) end
        end
        -- A wrong self, and none.
        if receiver then
          for _, other in ipairs { false, {}, io.stdout, "text", o.dispatcher, o.forged, o.finished } do
            if other ~= receiver then calls[#calls + 1] = function() f(other) end end
          end
          calls[#calls + 1] = function() f() end
        end
        local count = 0
        local function round(times)
          for i = 1, times do
            local ok, e = pcall(calls[i % #calls + 1])
            if ok then error("nothing was raised by call " .. i % #calls + 1, 0) end
            if i <= #calls and type(e) == "table" then
              local text = tostring(e)
              if e.kind ~= "usage" or not text:find("^script%.lua:%d+: ") then error(text, 0) end
            end
          end
        end
        measure(round, TIMES // 10, TIMES)
      end):run()
      if run.error then error(run.error.message, 0) end
      """)
    let measure = try program.vm.makeFunction { call in
      guard case .reference(let round) = try call.value(1) else { return call.answer() }
      let vm = call.vm
      _ = try vm.call(round, [try call.value(2)])
      for _ in 0..<3 { try vm.collectGarbage() }
      let references = vm.referenceCount
      let memory = vm.memoryUsed
      let depth = vm.stackDepth
      _ = try vm.call(round, [try call.value(3)])
      for _ in 0..<3 { try vm.collectGarbage() }
      #expect(vm.referenceCount == references)
      #expect(vm.memoryUsed <= memory + 2000)
      #expect(vm.stackDepth == depth)
      return call.answer()
    }
    try program.vm.setGlobal("measure", .reference(measure))
    // `scripts/stress` does it 100,000 times through the binary.
    try program.vm.setGlobal("TIMES", 300)
    _ = try program.vm.call(chunk, [swift])
    #expect(program.loop.pendingRuns.isEmpty)
    #expect(program.host.unobservedFailures().isEmpty)
  }
}
