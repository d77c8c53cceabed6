import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Ops written in Swift among ops of a script")
struct SwiftOpTests {
  private struct Refusal: Error, CustomStringConvertible {
    let description: String
  }

  @Test("A script adds, groups, starts and runs a Swift op like its own")
  func likeItsOwn() throws {
    let program = try ScriptProgram()
    let double = Op("DoubleOp", needs: ["n": "integer"], gives: ["n2": "integer"]) { context in
      let number: Int64 = try context.value("n")
      context.log("doubling")
      context.set("n2", number * 2)
    }
    let result = try program.run(
      """
      local DoubleOp = ...
      local FirstOp = flow.op("FirstOp", function(ctx) flow.sleep(1) ctx:set("n", 20) end)
      local LastOp = flow.op("LastOp", function(ctx) ctx:set("sum", ctx:get("n") + ctx:get("n2")) end)
      local run = flow.new("mixed"):data { list = { 1, 2, 3 } }
        :add(FirstOp):add(DoubleOp):add(LastOp)
        :add_grouped(DoubleOp, { input = "list", output = "doubled" })
        :run()
      assert(run.ok, run.error)
      local alone = DoubleOp:run { n = 1 }
      return run.data.sum, table.concat(run.data.doubled, " "), alone.data.n2, tostring(DoubleOp),
        DoubleOp.name, run:summary():find("%[DoubleOp%] doubling") ~= nil
      """, program.host.value(of: double))
    let texts = try result.map { try program.vm.tostring($0).description }
    #expect(texts == ["60", "2 4 6", "2", "op: DoubleOp", "DoubleOp", "true"])
  }

  @Test("A Swift op refuses arguments")
  func noArguments() throws {
    let program = try ScriptProgram()
    let op = Op("PlainOp") { _ in }
    let message = try program.text(
      "local ok, e = pcall(function(op) return op(1) end, ...) return e.kind .. ' ' .. e.message",
      program.host.value(of: op))
    #expect(
      message == "usage script.lua:1: op 'PlainOp' takes no arguments: it is written in Swift")
  }

  @Test("An error thrown by a Swift op is the error of the run")
  func errors() throws {
    let program = try ScriptProgram()
    let failing = Op("FailOp") { _ in throw FlowError(.error, "out of paper") }
    let refusing = Op("RefuseOp") { _ in throw Refusal(description: "not today") }
    let results = try program.run(
      """
      local list = {}
      for _, op in ipairs { ... } do
        local run = op:run()
        list[#list + 1] = run.error.kind .. " " .. run.error.op .. " " .. tostring(run.error)
        assert(run.error == run.error)
      end
      return table.unpack(list)
      """, program.host.value(of: failing), program.host.value(of: refusing))
    let texts = try results.map { try program.vm.tostring($0).description }
    #expect(texts == ["error FailOp [FailOp] out of paper", "error RefuseOp [RefuseOp] not today"])
  }

  @Test("The error of a failed request has its fields, however it is passed on")
  func requests() throws {
    let program = try ScriptProgram()
    let headers: [(name: ByteString, value: ByteString)] = [
      ("Retry-After", "7"), ("Via", "a"), ("via", "b"),
    ]
    let busy = FlowError.http(
      "busy", .init(status: 429, headers: headers, body: "slow down"), retryAfter: .seconds(7),
      mayRepeat: true)
    let lost = FlowError.network("lost", phase: .receive, sent: true, code: 104, mayRepeat: false)
    func op(_ name: ByteString, _ error: FlowError) throws -> LuaValue {
      try program.host.value(of: Op(name.description) { _ in throw error })
    }
    let results = try program.run(
      """
      local texts = {}
      local function show(e)
        local text = ("%s %s %s %s %s"):format(e.kind, e.message, e.code, e.status, e.retry_after)
        if e.headers then
          text = ("%s %s %s %s"):format(text, e.headers["retry-after"], e.headers.via, e.body)
        end
        texts[#texts + 1] = ("%s %s %s"):format(text, e.phase, e.sent)
      end
      for _, op in ipairs { ... } do
        local attempts = 0
        local failure = op:run().error
        show(failure)
        -- Raised again, in an op with attempts.
        local AgainOp = flow.op("AgainOp", { retry = 2, run = function()
          attempts = attempts + 1
          op:start():await()
        end })
        show(AgainOp:run().error)
        -- Into a worker and back.
        local WorkerOp = flow.op("WorkerOp", { thread = "worker", run = function(_, e) error(e) end })
        show(WorkerOp(failure):run().error)
        -- As a cause.
        show(flow.op("CauseOp", function() error({ inner = failure }) end):run().error.cause.inner)
        texts[#texts + 1] = tostring(attempts)
      end
      return table.unpack(texts)
      """, op("BusyOp", busy), op("LostOp", lost))
    let texts = try results.map { try program.vm.tostring($0).description }
    let http = "http busy 429 429 7.0 7 a, b slow down nil nil"
    let network = "network lost 104 nil nil receive true"
    #expect(
      texts == Array(repeating: http, count: 4) + ["2"] + Array(repeating: network, count: 4)
        + ["1"])
  }

  @Test("A Swift op sees the values that ops of the script set, tables included")
  func tables() throws {
    let program = try ScriptProgram()
    let sum = Op("SumOp", needs: ["list": "integer[]"], gives: ["sum": "integer"]) { context in
      let list: [Int64] = try context.value("list")
      context.set("sum", list.reduce(0, +))
    }
    let total = try program.text(
      """
      local ListOp = flow.op("ListOp", function(ctx) ctx:set("list", { 1, 2, 3 }) end)
      return flow.new("sum"):add(ListOp):add(...):run().data.sum
      """, program.host.value(of: sum))
    #expect(total == "6")
  }

  @Test("A list that Swift set is a table in the script")
  func lists() throws {
    let program = try ScriptProgram()
    let make = Op("MakeOp") { context in context.set("list", ["a", "b"]) }
    let text = try program.text(
      """
      local JoinOp = flow.op("JoinOp", function(ctx)
        ctx:set("joined", table.concat(ctx:get("list", "string[]"), "+"))
      end)
      local run = flow.new("lists"):add(...):add(JoinOp):run()
      return run.data.joined
      """, program.host.value(of: make))
    #expect(text == "a+b")
  }

  @Test("Marks and nulls of JSON survive a Swift op that copies values, a worker, and groups")
  func marksOfJSON() throws {
    let program = try ScriptProgram()
    let copying = Op("CopyOp", needs: ["value": "any"], gives: ["copy": "any"]) { context in
      let value: PlainValue = try context.value("value")
      // As a journal keeps it.
      let bytes = PlainValueCodec.encode(value)
      context.set("copy", try PlainValueCodec.decode(bytes))
    }
    let passing = Op("PassOp", needs: ["copy": "any"], gives: ["value": "any"]) { context in
      context.set("value", try context.value("copy") as PlainValue)
    }
    let texts = try program.run(
      """
      local CopyOp, PassOp = ...
      local json = flow.json
      local text = '{"empty":[],"list":[null,{},[[]]],"none":null,"object":{}}'
      local value = json.decode(text, { null = "keep" })
      json.object(value.object)
      local options = { empty = "array" }
      json.object(value.list[2])
      local WorkOp = flow.op("WorkOp", { needs = { copy = "any" }, gives = { copy = "any" },
        thread = "worker", run = function(ctx) ctx:set("copy", ctx:get "copy") end })
      local run = flow.new("marks"):data { value = value }:add(CopyOp):add(WorkOp):add(PassOp)
        :add(CopyOp):run()
      assert(run.ok, run.error)
      local group = flow.new("items"):data { items = { value, json.null, json.array() } }
        :add_grouped(CopyOp, { input = "items", output = "copies" }):run()
      assert(group.ok, group.error)
      assert(group.data.copies[2] == json.null)
      local alone = CopyOp:run { value = json.null }
      assert(alone.ok and alone.data.copy == json.null, alone.error)
      return json.encode(run.data.copy, options), json.encode(group.data.copies, options), text
      """, program.host.value(of: copying), program.host.value(of: passing)
    ).map { try program.vm.tostring($0).description }
    #expect(texts[0] == texts[2])
    #expect(texts[1] == "[\(texts[2]),null,[]]")
  }
}
