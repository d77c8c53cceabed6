@_spi(Scripting) import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Tables of Swift in scripts")
struct SharedTableTests {
  @Test("A table of Swift becomes one table of the script, which Swift sees as it is then")
  func oneTable() throws {
    let program = try ScriptProgram()
    let map = MapValue([("n", 1), ("list", [1, 2])])
    let run = try program.endedRun(
      """
      local first
      return flow.new("change")
        :add(flow.op("ChangeOp", function(ctx)
          first = ctx:get "map"
          first.n = 9
          table.insert(ctx:get("map", "table").list, 3)
        end))
        :case(function(data) return data.map.n == 9 end)
        :add(flow.op("SeeOp", function(ctx)
          ctx:set("same", rawequal(ctx:get "map", first))
          ctx:set("length", #ctx:get("map").list)
        end))
      """, data: ["map": FlowValue.opaque(map)])
    #expect(run.error == nil)
    #expect(run.data["same"] == true)
    #expect(run.data["length"] == 3)
    #expect(run.data["map"] == ["n": 9, "list": [1, 2, 3]])
    struct Content: Decodable, Equatable { var n: Int, list: [Int] }
    #expect(try run.data.decoded("map") == Content(n: 9, list: [1, 2, 3]))
    // The object that Swift has is its own.
    #expect(FlowValue.opaque(map) == ["n": 1, "list": [1, 2]])
  }

  @Test("A table that only a condition reads first is the table of the ops, too")
  func conditions() throws {
    let program = try ScriptProgram()
    let run = try program.endedRun(
      """
      local first
      return flow.new("change")
        :case(function(data) first = data.map return true end)
        :add(flow.op("SeeOp", function(ctx) ctx:set("same", rawequal(ctx:get "map", first)) end))
      """, data: ["map": [String: Int]()])
    #expect(run.data["same"] == true)
  }

  @Test("Runs with the same table of Swift don't see each other's changes")
  func isolation() throws {
    let program = try ScriptProgram()
    let list = FlowValue.opaque(ListValue([1]))
    let source = """
      return flow.op("AddOp", function(ctx) table.insert(ctx:get "list", 2) end)
      """
    for _ in 0..<2 {
      let run = try program.endedRun(source, data: ["list": list])
      #expect(run.data["list"] == [1, 2])
    }
    #expect(list == [1])
  }

  @Test("An item of a group changes the flow's table, and its own")
  func items() throws {
    let program = try ScriptProgram()
    let run = try program.endedRun(
      """
      return flow.new("groups"):add_grouped(flow.op("CountOp", {
        needs = { item = "table" }, gives = { n = "integer" },
        run = function(ctx)
          ctx:get("sum").n = ctx:get("sum").n + ctx:get("item").n
          ctx:get("item").n = 100
          ctx:set("n", ctx:get("item").n)
        end,
      }), { input = "items", output = "counts", as = "item" })
      """,
      data: ["sum": ["n": 0], "items": [["n": 1], ["n": 2]] as FlowValue])
    #expect(run.error == nil)
    #expect(run.data["sum"] == ["n": 3])
    #expect(run.data["counts"] == [100, 100])
  }

  @Test("Tables that occur twice, contain themselves or are nested deeply keep their form")
  func forms() throws {
    let program = try ScriptProgram()
    let shared = FlowValue.opaque(MapValue([("x", 1)]))
    // A map, because the cycle has to be broken for the check for leaks.
    let knot = MapValue()
    knot.set("knot", .opaque(knot))
    defer { knot.set("knot", .null) }
    var deep: FlowValue = 0
    for _ in 0..<10_000 { deep = [deep] }
    let run = try program.endedRun(
      """
      return flow.op("LookOp", function(ctx)
        local pair, knot, deep = ctx:get "pair", ctx:get "knot", ctx:get "deep"
        local depth = 0
        while type(deep) == "table" do deep, depth = deep[1], depth + 1 end
        ctx:set("verdict", tostring(rawequal(pair[1], pair[2])) .. tostring(rawequal(knot.knot, knot))
          .. depth)
      end)
      """,
      data: ["pair": [shared, shared] as FlowValue, "knot": FlowValue.opaque(knot), "deep": deep])
    #expect(run.data["verdict"] == "truetrue10000")
  }

  @Test("A list of 1,000 elements arrives as it is")
  func lists() throws {
    let program = try ScriptProgram()
    let words = (0..<1000).map { String(repeating: "x", count: $0 % 300) }
    let run = try program.endedRun(
      """
      return flow.op("CountOp", function(ctx)
        local bytes = 0
        for i, word in ipairs(ctx:get("words", "string[]")) do
          assert(#word == (i - 1) % 300)
          bytes = bytes + #word
        end
        ctx:set("bytes", bytes)
      end)
      """, data: ["words": words])
    #expect(run.error == nil)
    #expect(run.data.integer("bytes") == Int64(words.reduce(0) { $0 + $1.count }))
    #expect(run.data.value("words", as: [String].self) == words)
  }

  @Test("A table of one state is copied into another state")
  func twoHosts() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    let hosts = try (0..<2).map { _ in try ScriptHost(vm: LuaVM(), loop: loop) }
    defer {
      for host in hosts.reversed() { host.close() }
      loop.shutdown()
    }
    let ops = try hosts.map { host in
      let chunk = try host.vm.load(
        """
        return require "flow".op("AddOp", function(ctx)
          local list = ctx:get "list"
          list[#list + 1] = #list + 1
          ctx:set("list", list)
        end)
        """, name: "script.lua")
      return try #require(try host.vm.call(chunk).first.flatMap { host.op(in: $0) })
    }
    let run = Flow("both").add(ops[0]).add(ops[1]).add(ops[0]).start(on: loop, data: ["list": [1]])
    try run.wait()
    #expect(run.data["list"] == [1, 2, 3, 4])
  }

  @Test("A dictionary with integer keys has them in scripts, and comes back with them")
  func integerKeys() throws {
    let program = try ScriptProgram()
    let run = try program.endedRun(
      """
      return flow.op("KeysOp", function(ctx)
        local names = ctx:get "names"
        ctx:set("text", names[5] .. tostring(names["5"]))
        names[7] = "g"
        ctx:set("length", #ctx:get "list")
      end)
      """,
      data: [
        "names": try FlowValue(encoding: [5: "e"]),
        "list": try FlowValue(encoding: [1: true, 2: false]),
      ])
    #expect(run.data["text"] == "enil")
    #expect(run.data["length"] == 2)
    #expect(try run.data.decoded("names") == [5: "e", 7: "g"])
  }

  @Test("A Swift object passes through scripts as it is")
  func objects() throws {
    final class Session: CustomStringConvertible {
      var description: String { "session 7" }
    }
    let program = try ScriptProgram()
    let session = Session()
    let run = try program.endedRun(
      """
      return flow.op("PassOp", { needs = { session = "Session" }, run = function(ctx)
        local session = ctx:get("session", "Session")
        ctx:set("copy", session)
        ctx:set("inside", { session })
        local ok, message = pcall(function() return session.name end)
        ctx:set("read", message.message)
        ok, message = pcall(function() session.name = 1 end)
        ctx:set("write", message.message)
        ctx:set("text", ("%s %s %s"):format(session, type(session), session == ctx:get "same"))
      end })
      """,
      data: ["session": FlowValue.object(session), "same": FlowValue.object(session)])
    #expect(run.error == nil)
    #expect(run.data.object("copy", as: Session.self) === session)
    #expect(run.data["inside"]?[0]?.object(as: Session.self) === session)
    #expect(run.data["text"] == "session 7 userdata true")
    #expect(run.data["read"] == "script.lua:5: can't read field 'name' of a Swift object")
    #expect(run.data["write"] == "script.lua:7: can't set field 'name' of a Swift object")
    let other = try program.endedRun(
      "return flow.op('NeedOp', { needs = { session = 'Session' }, run = print })",
      data: ["session": 1])
    #expect(
      other.error?.message
        == "<session> in data bucket is <1> with type <integer>, but NOT type <Session>.")
  }

  @Test("A Swift object is released when neither a script nor a run has it")
  func release() throws {
    final class Session {
      let onRelease: () -> Void
      init(onRelease: @escaping () -> Void) { self.onRelease = onRelease }
      deinit { onRelease() }
    }
    var released = 0
    let program = try ScriptProgram()
    do {
      let session = Session { released += 1 }
      let run = try program.endedRun(
        "return flow.op('GetOp', function(ctx) ctx:get 'session' ctx:set('session', nil) end)",
        data: ["session": FlowValue.object(session)])
      #expect(run.error == nil)
    }
    try program.collect()
    #expect(released == 1)
  }

  @Test("A Swift object can't go to a worker, and the error says so")
  func workers() throws {
    final class Session {}
    let program = try ScriptProgram()
    let run = try program.endedRun(
      """
      return flow.op("WorkOp", { thread = "worker", needs = { session = "any" }, run = print })
      """, data: ["session": FlowValue.object(Session())])
    let message = try #require(run.error?.message.description)
    #expect(message.contains("session"))
    #expect(message.contains("worker"))
  }
}
