import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Calls with a deadline")
struct HostCallTests {
  private func function(_ program: ScriptProgram, _ source: String) throws -> LuaReference {
    try program.load(source)
  }

  /// A deadline that no test reaches.
  private var never: ContinuousClock.Instant { .now.advanced(by: .seconds(3600)) }

  private func soon() -> ContinuousClock.Instant { .now.advanced(by: .milliseconds(20)) }

  /// The kind of the error that a call throws; nil when it throws none.
  private func kind(of body: () throws -> Void) -> FlowError.Kind? {
    do {
      try body()
      return nil
    } catch {
      return (error as? FlowError)?.kind
    }
  }

  @Test("A call in time returns all results, also nil and those after a wait")
  func results() throws {
    let program = try ScriptProgram()
    let chunk = try function(program, "local a, b = ... flow.sleep(1) return a, nil, b, 'x', nil")
    let results = try program.host.call(chunk, [.integer(1), .integer(2)], deadline: never)
    let texts = try results.map { try program.vm.tostring($0).description }
    #expect(texts == ["1", "nil", "2", "x", "nil"])
    #expect(try program.host.call(try function(program, "return"), deadline: never).isEmpty)
  }

  @Test("A returned task is a result, not awaited")
  func task() throws {
    let program = try ScriptProgram()
    let chunk = try function(program, "return flow.with_delay(5, 7)")
    let results = try program.host.call(chunk, deadline: never)
    let awaiting = try program.load("return (...):await()")
    #expect(try program.vm.tostring(program.vm.call(awaiting, results).first ?? .nil) == "7")
  }

  @Test("An error of the function is thrown, with its kind and its message")
  func errors() throws {
    let program = try ScriptProgram()
    let chunk = try function(program, "flow.sleep(1) error('no luck')")
    do {
      _ = try program.host.call(chunk, deadline: never)
      Issue.record("nothing was thrown")
    } catch let error as FlowError {
      #expect(error.kind == .error)
      #expect(error.message == "script.lua:1: no luck")
    }
    #expect(program.host.unobservedFailures().isEmpty)
  }

  @Test(
    "A busy function is stopped at the deadline, also one that catches errors",
    arguments: [
      "while true do end", "while true do pcall(function() while true do end end) end",
      "local co = coroutine.wrap(function() while true do end end) co()",
      "flow.spawn(function() while true do end end) while true do end",
    ])
  func busy(_ source: String) throws {
    let program = try ScriptProgram()
    let chunk = try function(program, source)
    #expect(kind { _ = try program.host.call(chunk, deadline: soon()) } == .timeout)
    // The host can be used afterwards.
    #expect(try program.text("return 1 + 1") == "2")
  }

  @Test(
    "A waiting function is stopped at the deadline, with all that it has started",
    arguments: [
      "flow.sleep(1e6)", "flow.context().task:await()",
      "flow.op('WaitOp', function() flow.sleep(1e6) end):run():await()",
      "while true do pcall(flow.sleep, 1e6) end",
      "flow.spawn(function() flow.sleep(1e6) ended = true end):await()",
    ])
  func waiting(_ source: String) throws {
    let program = try ScriptProgram()
    let chunk = try function(program, source)
    let kind = kind {
      _ = try program.host.call(chunk, deadline: .now.advanced(by: .seconds(100)))
    }
    #expect(kind == (source.contains("context") ? .stalled : .timeout) || kind == .timeout)
    #expect(program.loop.now() < 1_000_000_000_000)
    #expect(try program.text("return tostring(ended)") == "nil")
    program.host.runToEnd()
  }

  @Test("On the clock of the machine the deadline is its own")
  func realClock() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    let chunk = try host.vm.load("require('flow').sleep(1e6)", name: "x")
    #expect(kind { _ = try host.call(chunk, deadline: soon()) } == .timeout)
    #expect(
      kind { _ = try host.call(chunk, deadline: .now.advanced(by: .seconds(-1))) } == .timeout)
  }

  @Test("A wait that nothing can end is stalled, without waiting for the deadline")
  func stalled() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    let chunk = try host.vm.load("require('flow').context().task:await()", name: "x")
    #expect(kind { _ = try host.call(chunk, deadline: never) } == .stalled)
  }

  @Test("Cleanups run when the deadline has stopped a call")
  func cleanups() throws {
    let program = try ScriptProgram()
    let chunk = try function(
      program,
      "local c <close> = setmetatable({}, { __close = function() closed = true end }) flow.sleep(1e6)"
    )
    let kind = kind { _ = try program.host.call(chunk, deadline: .now.advanced(by: .seconds(5))) }
    #expect(kind == .timeout)
    #expect(try program.text("return tostring(closed)") == "true")
  }

  @Test("A task that a call doesn't wait for continues without the deadline")
  func leftTask() throws {
    let program = try ScriptProgram()
    let chunk = try function(program, "flow.spawn(function() flow.sleep(1000) finished = true end)")
    _ = try program.host.call(chunk, deadline: .now.advanced(by: .seconds(10)))
    program.host.runToEnd()
    #expect(try program.text("return tostring(finished)") == "true")
  }

  @Test("Calls can be nested: the inner one has its own results and deadline")
  func nested() throws {
    let program = try ScriptProgram()
    let host = program.host
    let inner = try program.load("flow.sleep(1) return ... , 'inner'")
    let never = never
    let call = try program.vm.makeFunction { [unowned host] call in
      call.answer(try host.call(inner, [.integer(5)], deadline: never))
    }
    try program.vm.setGlobal("inner", .reference(call))
    let chunk = try function(program, "local a, b = inner() return b, a, 'outer'")
    let results = try host.call(chunk, deadline: never)
    let texts = try results.map { try program.vm.tostring($0).description }
    #expect(texts == ["inner", "5", "outer"])
  }
}
