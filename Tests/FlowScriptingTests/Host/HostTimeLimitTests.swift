import FlowEngine
import FlowScripting
import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("The time limit of a host")
struct HostTimeLimitTests {
  private static let limit = Duration.milliseconds(100)
  private static let message = "the time limit of 0.1s was exceeded"

  private func program() throws -> (host: ScriptHost, close: () -> Void) {
    let host = try ScriptHost(vm: LuaVM())
    try host.vm.setGlobal("flow", .reference(host.module))
    return (
      host,
      {
        host.close()
        host.loop.shutdown()
      }
    )
  }

  /// The error of a body as text, or its result. `#expect(throws:)` would reflect all that an error of Lua refers to,
  /// also what the threads of a canceller change meanwhile.
  private func outcome(_ host: ScriptHost, _ body: () throws -> [LuaValue]) throws -> String {
    do {
      return try host.vm.tostring(try body().first ?? .nil).description
    } catch {
      let error = host.flowError(from: error)
      return "\(error.kind.name): \(error.message)"
    }
  }

  /// The outcome of a chunk that sets the limit by `begin()`: the error that it ends with, or its first result.
  private func outcome(_ source: String) throws -> String {
    let (host, close) = try program()
    defer { close() }
    let chunk = try host.vm.load(ByteString(source), name: "script")
    let begin = try host.vm.makeFunction { [unowned host] call in
      host.timeLimit = Self.limit
      return call.answer()
    }
    try host.vm.setGlobal("begin", .reference(begin))
    return try outcome(host) { try host.vm.call(chunk) }
  }

  @Test(
    "The main chunk gets the error, whether it is busy or waits",
    arguments: [
      "while true do end", "flow.sleep(3600)", "coroutine.wrap(function() while true do end end)()",
      "flow.op('SleepOp', function() flow.sleep(3600) end):run() flow.sleep(3600)",
      "coroutine.wrap(function() flow.sleep(3600) end)()",
    ])
  func mainChunk(_ source: String) throws {
    #expect(try outcome("begin() " + source) == "time: \(Self.message)", "\(source)")
  }

  @Test(
    "Ops and tasks end with the error, whatever they catch",
    arguments: [
      "begin() or flow.op('O', function() while true do pcall(function() while true do end end) end end):start()",
      "begin() or flow.op('O', function() while true do pcall(flow.sleep, 3600) end end):start()",
      "begin() or flow.spawn(function() while true do pcall(function() while true do end end) end end)",
      "begin() or flow.spawn(function() flow.sleep(3600) end)",
      "begin() or flow.new('f'):data { t = { 1, 2 } }:add_grouped(flow.op('O', { primary_input = 'n', run = function() flow.sleep(3600) end }), { input = 't' }):start()",
      "flow.new('f'):add(flow.op('O', { thread = 'worker', run = function() while true do end end })):start() begin()",
      "flow.exec { 'sleep', '3600' } begin()",
      // Nothing waits for the program yet.
      "flow.exec { 'sleep', '3600' } begin() pcall(function() while true do end end)",
    ])
  func opsAndTasks(_ task: String) throws {
    let text = try outcome(
      """
      local task
      local ok, e = pcall(function() task = \(task) task:await() end)
      while task.state == "pending" do pcall(flow.sleep, 0.001) end
      return task.state .. " " .. task.error.kind .. " " .. task.error.message .. " " .. e.kind
      """)
    #expect(text == "failed time \(Self.message) time", "\(task)")
  }

  @Test("Cleanups run at its end")
  func cleanups() throws {
    let text = try outcome(
      """
      local done = {}
      begin()
      local run = flow.new("f"):add(flow.op("O", function(ctx)
        ctx:defer(function() flow.sleep(0.001) done[#done + 1] = "deferred" end)
        local c <close> = setmetatable({}, { __close = function() done[#done + 1] = "closed" end })
        flow.sleep(3600)
      end)):start()
      pcall(run.await, run)
      while run.state == "pending" do flow.sleep(0.001) end
      return table.concat(done, " ")
      """)
    #expect(text == "closed deferred")
  }

  @Test("A call with a deadline throws it, and its code doesn't notice")
  func calls() throws {
    let (host, close) = try program()
    defer { close() }
    let later = ContinuousClock.now.advanced(by: .seconds(3600))
    for body in ["while true do pcall(function() while true do end end) end", "flow.sleep(3600)"] {
      host.timeLimit = Self.limit
      let function = try host.vm.load(ByteString(body), name: "script")
      let text = try outcome(host) { try host.call(function, deadline: later) }
      #expect(text == "time: \(Self.message)", "\(body)")
    }
    host.timeLimit = Self.limit
    let function = try host.vm.load(
      "while true do pcall(function() while true do end end) end", name: "script")
    let text = try outcome(host) { try host.vm.call(function, deadline: later) }
    #expect(text == "time: \(Self.message)")
  }

  @Test("Runs that a loop executes end with the error")
  func runs() throws {
    let (host, close) = try program()
    defer { close() }
    let chunk = try host.vm.load(
      "return flow.op('O', function() flow.sleep(3600) end)", name: "script")
    let op = try #require(try host.vm.call(chunk).first.flatMap { host.op(in: $0) })
    host.timeLimit = Self.limit
    let run = op.start(on: host.loop)
    host.runToEnd()
    let error = run.error
    #expect(error?.kind == .time)
    #expect(error?.message == Self.message)
  }

  @Test("The host can be used again after the error, which it throws once")
  func afterwards() async throws {
    let (host, close) = try program()
    defer { close() }
    let wait = try host.vm.load("flow.sleep(0.001) return 1", name: "script")
    host.timeLimit = .zero
    // It ends while nothing runs.
    usleep(20_000)
    let first = try outcome(host) { try host.vm.call(wait) }
    #expect(first == "time: the time limit of 0s was exceeded")
    let text1 = try outcome(host) { try host.vm.call(wait) }
    #expect(text1 == "1")
    host.timeLimit = nil
    let text2 = try outcome(host) { try host.vm.call(wait) }
    #expect(text2 == "1")
  }

  @Test("A limit that is removed or replaced stops nothing, nor does one of a closed host")
  func removed() throws {
    let (host, close) = try program()
    let wait = try host.vm.load("flow.sleep(0.15) return 1", name: "script")
    host.timeLimit = Self.limit
    host.timeLimit = .seconds(3600)
    let text3 = try outcome(host) { try host.vm.call(wait) }
    #expect(text3 == "1")
    host.timeLimit = Self.limit
    host.timeLimit = nil
    let text4 = try outcome(host) { try host.vm.call(wait) }
    #expect(text4 == "1")
    host.timeLimit = .milliseconds(1)
    close()
    host.timeLimit = .milliseconds(1)
    usleep(5_000)
  }

  @Test("A script that is run by one call may have it in addition to its own time limit")
  func runByOneCall() async throws {
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "while true do end", timeLimit: .seconds(3600)) { host in
        host.timeLimit = Self.limit
      }
    }
    #expect(error?.kind == .time)
    #expect(error?.message == Self.message)
    let own = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: "while true do end", timeLimit: Self.limit)
    }
    #expect(own?.kind == .timeout)
  }
}
