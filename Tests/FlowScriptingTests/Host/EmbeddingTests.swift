import FlowEngine
import FlowScripting
import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("A Swift program that embeds scripts")
struct EmbeddingTests {
  @Test("Chunks take arguments and return values of every type")
  func chunks() throws {
    let program = try ScriptProgram()
    let results = try program.run(
      "return nil, true, 1, 1.0, 'a\\0\\xff', {}, ...", .integer(.min), "text")
    #expect(results.count == 8)
    guard case .nil = results[0], case .boolean(true) = results[1], case .integer(1) = results[2],
      case .number(1) = results[3], case .string(let bytes) = results[4],
      case .reference(let table) = results[5], case .integer(.min) = results[6],
      case .string("text") = results[7]
    else {
      Issue.record("values changed on their way: \(results)")
      return
    }
    #expect(bytes.bytes == [97, 0, 255])
    #expect(table.kind == .table)
  }

  @Test("The module is the value that require returns")
  func module() throws {
    let program = try ScriptProgram()
    #expect(try program.text("return require 'flow' == flow") == "true")
    let module = LuaValue.reference(program.host.module)
    #expect(try program.text("return require 'flow' == ...", module) == "true")
  }

  @Test("A Swift program gets the page, the trace and the spans of a run")
  func views() throws {
    let program = try ScriptProgram()
    program.host.logsWaits = true
    let value = try program.run(
      "return flow.op('NapOp', function(ctx) flow.sleep(2) ctx:fail 'tired' end):start()")
    let run = try #require(program.host.startedRun(in: value[0]))
    try run.waitUntilEnd()
    #expect(run.timeline().description.contains("\"name\":\"NapOp\""))
    #expect(
      run.trace().description.contains(
        "\"cat\":\"wait\",\"args\":{\"path\":\"NapOp\",\"for\":\"sleep\""))
    #expect(run.report().description.contains("tired"))
    #expect(program.host.startedRun(in: value[0])?.error?.message == "tired")
  }

  @Test("A Swift program exports the spans of a run, as a part of its own trace")
  func spans() throws {
    let program = try ScriptProgram()
    #expect(program.host.serviceName == "flowlua")
    program.host.serviceName = "shop"
    let id = "4bf92f3577b34da6a3ce929d0e0e4736"
    program.host.loop.trace = TraceContext(traceparent: "00-\(id)-00f067aa0ba902b7-01")
    let value = try program.run("return flow.op('NapOp', function() flow.sleep(2) end):start()")
    let run = try #require(program.host.startedRun(in: value[0]))
    let open = program.host.otlp(of: run)
    #expect(open.hasPrefix("{\"resourceSpans\""))
    try run.wait()
    let spans = program.host.otlp(of: run)
    #expect(spans.contains("\"name\":\"NapOp\""))
    // The environment of the tests may name another service.
    if getenv("OTEL_SERVICE_NAME") == nil, getenv("OTEL_RESOURCE_ATTRIBUTES") == nil {
      #expect(spans.contains("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}}"))
    }
    #expect(spans.contains("\"traceId\":\"\(id)\""))
  }

  @Test("A run that a script started can be read and waited for in Swift")
  func runs() throws {
    let program = try ScriptProgram()
    let value = try program.run(
      """
      local WaitOp = flow.op("WaitOp", function(ctx)
        flow.sleep(3600)
        ctx:set("answer", ctx:get("question") .. "!")
      end)
      return flow.new("asked"):add(WaitOp):start { question = "why" }
      """)
    let run = try #require(program.host.startedRun(in: value[0]))
    #expect(run.state == .pending)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.data.string("answer") == "why!")
    #expect(run.duration == .seconds(3600))
    #expect(program.host.op(in: value[0]) == nil)
  }

  @Test("A call for attention doesn't delay the end of a script")
  func attention() throws {
    let program = try ScriptProgram()
    var calls = 0
    program.vm.onAttention = { calls += 1 }
    program.vm.acceptAttention()
    program.vm.attention.call()
    #expect(program.host.runToEnd() == .settled)
    #expect(calls == 1)
    #expect(!program.vm.hasRequest)
  }

  @Test("A call for attention while ops of Swift execute cancels none of them")
  func attentionBetweenOps() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer {
      host.close()
      host.loop.shutdown()
    }
    var calls = 0
    host.vm.onAttention = { calls += 1 }
    host.vm.acceptAttention()
    let vm = host.vm
    let attention = Op("AttentionOp") { _ in
      vm.attention.call()
      // The scheduler looks for requests at most once a millisecond.
      usleep(2000)
    }
    let flow = Flow("calls")
    for _ in 0..<10 { flow.add(attention) }
    let run = flow.start(on: host.loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(calls > 0)
  }

  @Test("An op that a script made can be started in Swift")
  func ops() throws {
    let program = try ScriptProgram()
    let value = try program.run(
      "return flow.op('AddOp', function(ctx) ctx:set('b', ctx:get('a') + 1) end)")
    let op = try #require(program.host.op(in: value[0]))
    for number in 1...3 {
      let run = op.start(on: program.loop, data: InitialData([("a", .integer(Int64(number)))]))
      try run.wait()
      #expect(run.data.integer("b") == Int64(number) + 1)
    }
    #expect(program.host.startedRun(in: value[0]) == nil)
  }

  @Test("An object of the engine is one and the same value in scripts")
  func identity() throws {
    let program = try ScriptProgram()
    let flow = Flow("outer")
    let run = flow.start(on: program.loop)
    let same = try program.text(
      "local a, b, c, d = ... return a == b and c == d and a ~= c",
      program.host.value(of: flow), program.host.value(of: flow), program.host.value(of: run),
      program.host.value(of: run))
    #expect(same == "true")
    #expect(program.host.op(in: try program.host.value(of: flow)) === flow)
    #expect(program.host.startedRun(in: try program.host.value(of: run)) === run)
  }

  @Test("runToEnd runs until everything has settled and reports failures")
  func toTheEnd() throws {
    let program = try ScriptProgram()
    try program.run(
      """
      flow.op("LaterOp", function() flow.sleep(10) error("too late", 0) end):start()
      flow.op("FineOp", function() flow.sleep(20) end):start()
      """)
    program.host.runToEnd()
    #expect(program.loop.pendingRuns.isEmpty)
    #expect(program.loop.now() == 20_000_000_000)
    let failures = program.host.unobservedFailures()
    #expect(failures.map(\.name) == ["LaterOp"])
    #expect(failures.map(\.error.message) == ["too late"])
  }

  @Test("Two nested states on one thread are independent")
  func nestedHosts() throws {
    let outer = try ScriptProgram()
    let inner = try ScriptProgram()
    try inner.run("function double(n) flow.sleep(1) return n * 2 end")
    let nested = try outer.vm.makeFunction { call in
      let results = try inner.run(
        "return flow.op('InnerOp', function(ctx) ctx:set('n', double(ctx:get('n'))) end)")
      let op = try #require(inner.host.op(in: results[0]))
      let run = op.start(on: inner.loop, data: InitialData([("n", .integer(call.integer(1) ?? 0))]))
      try run.wait()
      return call.answer(.integer(run.data.integer("n") ?? 0))
    }
    try outer.vm.setGlobal("nested", .reference(nested))
    let sum = try outer.text(
      """
      local NestedOp = flow.op("NestedOp", function(ctx)
        flow.sleep(1)
        ctx:set("sum", ctx:get("sum") + nested(21))
        flow.sleep(1)
      end)
      return flow.new("outer"):data { sum = 0 }:add(NestedOp):add(NestedOp):run().data.sum
      """)
    #expect(sum == "84")
    #expect(outer.loop.now() == 4_000_000_000)
    #expect(inner.loop.now() == 2_000_000_000)
  }

  @Test("A program finds an op of a script by its global name")
  func opsByName() throws {
    let program = try ScriptProgram()
    _ = try program.run(
      "local flow = require 'flow' RuleOp = flow.op('RuleOp', print) all = flow.new('all') count = 1"
    )
    #expect(try program.host.op(named: "RuleOp").name == "RuleOp")
    #expect(try program.host.op(named: "all") is Flow)
    let misspelt = #expect(throws: FlowError.self) { try program.host.op(named: "RulesOp") }
    #expect(misspelt?.message == "the script has no global op 'RulesOp' (did you mean 'RuleOp'?)")
    let other = #expect(throws: FlowError.self) { try program.host.op(named: "count") }
    #expect(other?.message == "the global 'count' is no op (number)")
  }

  @Test("An object of one state is refused by another")
  func foreignObjects() throws {
    let one = try ScriptProgram()
    let other = try ScriptProgram()
    let value = try one.run("return flow.op('OneOp', print)")[0]
    #expect(other.host.op(in: value) == nil)
    // In the other state, too, an op was the last value that Swift took.
    let same = try other.run("return flow.op('OtherOp', print)")[0]
    #expect(other.host.op(in: value) == nil)
    #expect(other.host.op(in: same)?.name == "OtherOp")
  }
}
