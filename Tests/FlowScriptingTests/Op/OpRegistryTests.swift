import FlowEngine
import FlowScripting
import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("Ops that a Swift program registers")
struct OpRegistryTests {
  private func makeProgram() throws -> ScriptProgram {
    let program = try ScriptProgram()
    program.host.register(
      Op("DoubleOp", doc: "doubles", needs: ["n": "integer"], gives: ["n2": "integer"]) { context in
        let number: Int64 = try context.value("n")
        context.set("n2", number * 2)
      })
    program.host.register(
      OpClass("GreetOp", doc: "greets") { arguments in
        let name = try arguments.string(1)
        let times = arguments.isNil(2) ? 1 : try arguments.integer(2)
        guard times > 0 else { throw arguments.wrong(2, "at least one greeting expected") }
        let options = try arguments.options(3, known: ["loud", "mark"])
        let mark = try options.string("mark") ?? (try options.boolean("loud") == true ? "!" : ".")
        return Op("GreetOp") { context in
          for _ in 0..<times { context.log("Hello, \(name)\(mark)") }
        }
      })
    return program
  }

  @Test("Scripts find registered ops in flow.ops and use them like their own")
  func used() throws {
    let program = try makeProgram()
    let text = try program.text(
      """
      local ops = flow.ops
      assert(ops == flow.ops and ops.DoubleOp == ops.DoubleOp and ops.DoubleOp.doc == "doubles")
      assert(ops.GreetOp.doc == "greets" and ops.GreetOp.name == "GreetOp")
      local run = flow.new("mixed"):data { n = 4, list = { 1, 2 } }
        :add(ops.DoubleOp):add(ops.GreetOp("Ann", 2, { loud = true }))
        :add_grouped(ops.DoubleOp, { input = "list", output = "doubled" }):run()
      assert(run.ok, run.error)
      local _, count = run:summary():gsub("%[GreetOp%] Hello, Ann!\\n", "")
      return run.data.n2 .. " " .. table.concat(run.data.doubled, " ") .. " " .. count
      """)
    #expect(text == "8 2 4 2")
  }

  @Test("Wrong arguments name class, argument, expected, got and line")
  func wrongArguments() throws {
    let program = try makeProgram()
    let results = try program.run(
      """
      local GreetOp, messages = flow.ops.GreetOp, {}
      for _, arguments in ipairs {
        {}, { {} }, { "x", "2" }, { "x", 1.5 }, { "x", 0 }, { "x", 1, 5 }, { "x", 1, { lout = true } },
        { "x", 1, { mark = 1 } },
      } do
        local ok, e = pcall(function() GreetOp(table.unpack(arguments)) end)
        messages[#messages + 1] = e.kind .. " " .. e.message
      end
      return table.unpack(messages)
      """)
    let messages = try results.map { try program.vm.tostring($0).description }
    let place = "usage script.lua:6: bad argument "
    #expect(
      messages == [
        place + "#1 to 'GreetOp' (string expected, got no value)",
        place + "#1 to 'GreetOp' (string expected, got table)",
        place + "#2 to 'GreetOp' (integer expected, got string)",
        place + "#2 to 'GreetOp' (integer expected, got 1.5)",
        place + "#2 to 'GreetOp' (at least one greeting expected)",
        place + "#3 to 'GreetOp' (table expected, got number)",
        place + "#3 to 'GreetOp' (unknown field 'lout' (did you mean 'loud'?))",
        place + "#3 to 'GreetOp' (field 'mark': string expected, got number)",
      ])
  }

  @Test("A class that wasn't called isn't an op yet")
  func uncalled() throws {
    let program = try makeProgram()
    let sentence = "op 'GreetOp' needs its arguments: call GreetOp(…) first"
    let added = try program.text(
      "return select(2, pcall(function() flow.new('f'):add(flow.ops.GreetOp) end)).message")
    #expect(added == "script.lua:1: bad argument #1 to 'add' (\(sentence))")
    let started = try program.text(
      "return select(2, pcall(function() flow.ops.GreetOp:run() end)).message")
    #expect(started == "script.lua:1: " + sentence)
    let value = try program.run("return flow.ops.GreetOp")[0]
    let run = try #require(program.host.op(in: value)).start(on: program.loop)
    #expect(run.error?.kind == .usage)
    #expect(run.error?.message.description == sentence)
  }

  @Test("An error thrown by a class is raised in the script")
  func thrown() throws {
    let program = try ScriptProgram()
    program.host.register(OpClass("ErrorOp") { _ in throw FlowError(.error, "no paper") })
    program.host.register(OpClass("UsageOp") { _ in throw FlowError.usage("not on Sundays") })
    let text = try program.text(
      """
      local _, a = pcall(flow.ops.ErrorOp)
      local _, b = pcall(function() flow.ops.UsageOp() end)
      return a.kind .. " " .. a.message .. ", " .. b.kind .. " " .. b.message
      """)
    #expect(text == "error no paper, usage script.lua:2: not on Sundays")
  }

  @Test("A flow and an op that a script made can be registered too")
  func flows() throws {
    let program = try makeProgram()
    let made = try program.run(
      "return flow.op('LuaOp', function(ctx, x) ctx:set('x', x) end)")
    program.host.register(try #require(program.host.op(in: made[0])))
    program.host.register(Flow("twice").add(Op("SetOp") { $0.set("y", 1 as Int64) }))
    let text = try program.text(
      """
      local run = flow.new("both"):add(flow.ops.LuaOp(5)):add(flow.ops.twice):run()
      return run.data.x + run.data.y .. " " .. tostring(flow.ops.twice)
      """)
    #expect(text == "6 flow: twice")
  }

  @Test("flow.ops is like a table that can't be written")
  func readOnly() throws {
    let program = try makeProgram()
    let text = try program.text(
      """
      local ops, names = flow.ops, {}
      assert(ops.NoSuchOp == nil and ops[1] == nil and ops[{}] == nil)
      for name, op in pairs(ops) do
        assert(ops[name] == op and op.name == name)
        if name == "DoubleOp" or name == "GreetOp" then names[#names + 1] = name end
      end
      local ok, e = pcall(function() ops.DoubleOp = nil end)
      assert(not ok and e.kind == "usage" and not pcall(rawset, ops, "x", 1))
      return table.concat(names, " ") .. " " .. tostring(ops) .. " " .. e.message
      """)
    #expect(
      text == "DoubleOp GreetOp flow.ops script.lua:7: flow.ops is read-only: "
        + "the program that runs the script registers its ops")
  }

  @Test("A class takes a table as a structure, and names the part that is wrong")
  func structures() throws {
    struct Size: Decodable {
      var width: Int
      var height: Int
    }
    let program = try ScriptProgram()
    program.host.register(
      OpClass("AreaOp") { arguments in
        let size = try arguments.value(1, as: Size.self)
        return Op("AreaOp") { $0.set("area", size.width * size.height) }
      })
    #expect(
      try program.text(
        """
        local AreaOp = flow.ops.AreaOp
        local _, e = pcall(function() AreaOp { width = 2, height = "x" } end)
        return AreaOp { width = 2, height = 3 }:run().data.area .. " " .. e.message
        """) == "6 script.lua:2: bad argument #1 to 'AreaOp' (height: integer expected, got string)"
    )
  }

  @Test("An integer may be a float with an integral value, as everywhere in Lua")
  func integers() throws {
    let program = try ScriptProgram()
    program.host.register(
      OpClass("WidthOp") { arguments in
        let width = try arguments.value(1, as: Int.self)
        return Op("WidthOp") { $0.set("width", width) }
      })
    let text = try program.text(
      """
      local WidthOp = flow.ops.WidthOp
      local _, e = pcall(WidthOp, 640.5)
      return math.type(WidthOp(1280 / 2):run().data.width) .. " " .. e.message
      """)
    #expect(
      text == "integer script.lua:2: bad argument #1 to 'WidthOp' (integer expected, got float)")
  }

  @Test("A name that is taken traps with a sentence")
  func takenName() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let program = try ScriptProgram()
      program.host.register(Op("SameOp") { _ in })
      program.host.register(OpClass("SameOp") { _ in Op("SameOp") { _ in } })
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("OpRegistryTests.swift:"), "\(text)")
    #expect(text.contains(": Fatal error: an op named 'SameOp' is registered already"))
  }
}
