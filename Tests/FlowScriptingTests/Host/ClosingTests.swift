import FlowEngine
@testable import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("A closed host")
struct ClosingTests {
  @Test("Objects, references and functions of the state return an error")
  func references() throws {
    let program = try ScriptProgram()
    let values = try program.run(
      "return flow.op('AnOp', print), flow.new('aFlow'), flow.new('b'):run(), print, {}")
    program.host.close()
    program.host.close()
    #expect(!program.vm.isOpen)
    for value in values {
      #expect(program.host.op(in: value) == nil)
      #expect(program.host.startedRun(in: value) == nil)
      guard case .reference(let reference) = value else { continue }
      #expect(throws: LuaError.self) { try program.vm.call(reference) }
      #expect(throws: LuaError.self) { try program.vm.pairs(of: reference) }
    }
    #expect(throws: LuaError.self) { try program.run("return 1") }
    #expect(throws: LuaError.self) { try program.host.value(of: Op("AnOp") { _ in }) }
    #expect(program.vm.referenceCount == 0)
  }

  @Test("Programs that scripts started are asked to stop, and others aren't")
  func programs() throws {
    let program = try ScriptProgram()
    let loop = program.loop
    let values = try program.run(
      """
      flow.exec { "sleep", "100" }
      local waiting = flow.op("WaitOp", function() flow.exec({ "sleep", "100" }):await() end):start()
      return waiting, flow.ops.ExecOp({ "sleep", "100" }):start()
      """)
    let run = try #require(program.host.startedRun(in: values[1]))
    let other = ProcessTask(ProcessRequest(["cat"], stdin: "x"), on: loop)
    program.host.close()
    #expect(loop.turn { run.isConcluded })
    #expect(run.error?.message == "cancelled: the host of the script was closed")
    loop.runUntilIdle()
    #expect(other.result?.stdout == "x")
  }

  @Test("Runs and errors that Swift holds can still be read")
  func runs() throws {
    let program = try ScriptProgram()
    let value = try program.run(
      "return flow.op('FailOp', function(ctx) ctx:set('x', {}) ctx:fail('no') end):run()")
    let run = try #require(program.host.startedRun(in: value[0]))
    program.host.close()
    #expect(run.error?.message == "no")
    #expect(run.summary().description.contains("[FailOp] DidFinish: withError: no"))
    #expect(run.data["x"] != nil)
    #expect(program.host.report(of: try #require(run.error)).description.contains("no"))
    #expect(program.host.unobservedFailures().map(\.name) == ["FailOp"])
  }

  @Test("A script's wait ends with an error when the loop continues")
  func waits() throws {
    let program = try ScriptProgram()
    let values = try program.run(
      """
      return flow.op("SleepOp", function() flow.sleep(5) end):start(),
        flow.op("SelfOp", function(ctx) ctx.run:wait() end):start(),
        flow.new("callback"):will_start(function() flow.sleep(5) end):start()
      """)
    let runs = values.compactMap { program.host.startedRun(in: $0) }
    #expect(runs.count == 3)
    program.host.close()
    program.loop.runUntilIdle()
    program.host.runToEnd()
    #expect(runs.allSatisfy { $0.state == .failed })
    #expect(program.loop.pendingRuns.isEmpty)
  }

  @Test("Ops and callbacks of scripts fail, when Swift starts them, with an error")
  func starts() throws {
    let program = try ScriptProgram()
    let values = try program.run(
      """
      return flow.op("AnOp", function() end), flow.op("BoundOp", function() end)("argument"),
        flow.new("callback"):will_start(function() end),
        flow.op("NeedOp", { needs = { x = function() return true end }, run = function() end })
      """)
    let ops = values.compactMap { program.host.op(in: $0) }
    #expect(ops.count == 4)
    program.host.close()
    for op in ops {
      let run = op.start(on: program.loop, data: InitialData([("x", .integer(1))]))
      try run.waitUntilEnd()
      #expect(run.state == .failed, "\(op.name)")
      #expect(run.error?.message.description.contains("closed") == true, "\(op.name)")
    }
  }

  @Test("The loop continues for work outside the state")
  func loop() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    do {
      let host = try ScriptHost(vm: LuaVM(), loop: loop)
      host.close()
    }
    let double = Op("DoubleOp", needs: ["n": "integer"], gives: ["n2": "integer"]) { context in
      context.set("n2", try context.value("n", as: Int64.self) * 2)
    }
    let run = Flow("afterwards").data("list", [1, 2, 3])
      .addGrouped(double, GroupDispatcher(input: "list", output: "doubled", failures: "failures"))
      .start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.data.value("doubled", as: [Int64].self) == [2, 4, 6])
  }

  @Test("A second host on the loop of a closed one works")
  func secondHost() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    for number in 1...3 {
      let host = try ScriptHost(vm: LuaVM(), loop: loop)
      let chunk = try host.vm.load(
        """
        local flow = require "flow"
        local DoubleOp = flow.op("DoubleOp", { needs = { n = "any" }, gives = { m = "any" },
          run = function(ctx) flow.sleep(1) ctx:set("m", ctx:get("n") * 2) end })
        local run = flow.new("groups"):data { list = { 1, 2 } }
          :add_grouped(DoubleOp, { input = "list", output = "doubled" }):run()
        return run.data.doubled[2], run.ok
        """, name: "chunk")
      let results = try host.vm.call(chunk)
      guard case .integer(4) = results[0], case .boolean(true) = results[1] else {
        Issue.record("host \(number): \(results)")
        return
      }
      host.close()
    }
  }

  @Test("Everything that scripts made is released with the state")
  func nothingIsLeft() throws {
    weak var host: ScriptHost?
    weak var vm: LuaVM?
    weak var flow: Op?
    weak var op: Op?
    weak var run: Run?
    do {
      let program = try ScriptProgram()
      let values = try program.run(
        """
        local AnOp AnOp = flow.op("AnOp", function(ctx) return AnOp and ctx:set("x", {}) end)
        local aFlow = flow.new("aFlow"):add(AnOp)
        aFlow:did_finish(function() return aFlow end)
        for _ in pairs(flow.ops) do end
        return AnOp, aFlow, aFlow:run()
        """)
      host = program.host
      vm = program.vm
      op = program.host.op(in: values[0])
      flow = program.host.op(in: values[1])
      // Each registered one holds the host, which holds it.
      if let flow { program.host.register(flow) }
      if let op { program.host.register(op) }
      run = program.host.startedRun(in: values[2])
      #expect(op != nil && flow != nil && run != nil)
    }
    #expect(host == nil)
    #expect(vm == nil)
    #expect(op == nil)
    #expect(flow == nil)
    #expect(run == nil)
  }

  @Test(
    "Code that waits is released with its host and loop",
    arguments: [
      "flow.sleep(5)", "flow.context().task:await()", "flow.spawn(flow.sleep, 5):await()",
      "flow.context().task:next(print):await()", "SleepOp:start():wait()", "SleepOp:run()",
      "flow.exec({ 'sleep', '5' }):await()",
      "flow.when_all { flow.spawn(flow.sleep, 5), flow.context().task }:await()",
      "pcall(flow.sleep, 5) flow.sleep(5)",
    ], [true, false])
  func waitsAreReleased(wait: String, closesFirst: Bool) throws {
    weak var host: ScriptHost?
    weak var loop: FlowEventLoop?
    do {
      let program = try ScriptProgram()
      host = program.host
      loop = program.loop
      try program.run(
        """
        SleepOp = flow.op("SleepOp", function() flow.sleep(5) end)
        local function wait() \(wait) end
        local WaitOp = flow.op("WaitOp", { primary_input = "n", run = wait })
        local CleanOp = flow.op("CleanOp", function(ctx) ctx:defer(wait) end)
        WaitOp:start()
        CleanOp:start()
        flow.spawn(wait)
        flow.resolved(1):next(wait)
        flow.new("callback"):will_start(wait):start()
        flow.new("last"):did_finish(wait):start()
        flow.new("case"):case(wait):add(WaitOp):start()
        flow.new("group"):data { list = { 1, 2 } }:add_grouped(WaitOp, { input = "list" }):start()
        flow.op("RetryOp", { retry = { attempts = 2, when = wait }, run = error }):start()
        flow.machine { name = "machine", start = "a", flow.step("a", { run = wait }) }:start()
        """)
      while program.loop.turn(mayBlock: false) == .worked {}
      if !closesFirst { program.loop.shutdown() }
    }
    // Not compared in `#expect`, which would show what is left, with all its references.
    let (isHostReleased, isLoopReleased) = (host == nil, loop == nil)
    #expect(isHostReleased)
    #expect(isLoopReleased)
  }

  // A function of the state that captured a value of it would keep the state.
  @Test("A host whose creation fails releases everything, wherever it fails")
  func hostThatFailsAnywhere() throws {
    var room = 1_000
    while true {
      weak var vm: LuaVM?
      do {
        let made = try LuaVM(configuration: LuaConfiguration(memoryLimit: 40_000))
        vm = made
        made.memoryLimit = made.memoryUsed + room
        if let host = try? ScriptHost(vm: made) { return host.close() }
      }
      #expect(vm == nil, "with room for \(room) bytes")
      room += 500
    }
  }

  @Test("A host whose creation fails releases everything")
  func hostThatFails() throws {
    weak var vm: LuaVM?
    do {
      let made = try LuaVM(configuration: LuaConfiguration(memoryLimit: 40_000))
      vm = made
      made.memoryLimit = made.memoryUsed + 2_000
      #expect(throws: (any Error).self) { try ScriptHost(vm: made) }
      made.memoryLimit = nil
      // The state is still the program's, and a host can be made after all.
      let host = try ScriptHost(vm: made)
      host.close()
    }
    #expect(vm == nil)
  }
}

@Suite("What the files above a host keep with it")
struct HostServiceTests {
  private final class First: HostService {
    var notes: [String] = []
  }

  /// Notes in the first one what happens to it.
  private final class Second: HostService {
    let first: First

    init(_ first: First) { self.first = first }

    func hostWillClose(_ host: ScriptHost) { first.notes.append("closing \(host.vm.isOpen)") }
    func hostDidClose(_ host: ScriptHost) { first.notes.append("closed \(host.vm.isOpen)") }
  }

  @Test("A service is made once, notices the end of the host, and isn't kept afterwards")
  func life() throws {
    let program = try ScriptProgram()
    let host = program.host
    #expect(host.existing(First.self) == nil)
    let first = host.service { First() }
    #expect(host.service { First() } === first && host.existing(First.self) === first)
    weak let second = host.service { Second(first) }
    #expect(second != nil)
    host.close()
    #expect(first.notes == ["closing true", "closed false"])
    #expect(second == nil && host.existing(First.self) == nil)
    #expect(host.service { First() } !== first)
  }
}

extension ClosingTests {
  @Test("A closed host takes no op and no cancellation any more")
  func afterTheEnd() throws {
    let program = try ScriptProgram()
    program.host.close()
    program.host.register(Op("LateOp") { _ in })
    #expect(!program.host.unregister("LateOp"))
    program.host.cancel()
    program.loop.runUntilIdle()
  }
}

@Suite("A program that doesn't use FlowNodes")
struct NoRemoteServiceTests {
  @Test("Its ops on other nodes fail, and flow.remote says what is missing")
  func refused() throws {
    let program = try ScriptProgram()
    let problem = "this program can't execute ops on other nodes"
    let op = try program.text(
      "return flow.op('FarOp', { thread = 'remote', run = print }):run().error.message")
    #expect(op.contains(problem), "\(op)")
    let call = try program.text(
      "return select(2, pcall(flow.remote, { url = 'nats://127.0.0.1' }))")
    #expect(call.contains("bad use of 'remote' (\(problem)"), "\(call)")
  }
}
