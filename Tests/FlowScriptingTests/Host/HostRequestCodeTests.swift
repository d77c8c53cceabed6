import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// Code of a request that isn't the body of an op: what its globals are, and what stops it.
@Suite("Code of requests outside of ops")
struct HostRequestCodeTests {
  private static let code = """
    local flow = require "flow"
    seen, mode = {}, "note"

    -- Called by the code of each kind.
    function probe()
      if mode == "busy" then
        began()
        while true do pcall(function() while true do end end) end
      end
      if not count then
        count = 1
        seen[#seen + 1] = count
      end
    end

    local function probing() probe() return true end
    local WaitOp = flow.op("WaitOp", function() flow.sleep(1) end)
    local PlainOp = flow.op("PlainOp", { gives = { value = "integer" }, run = function(ctx) ctx:set("value", 1) end })
    local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, gives = { size = "integer" },
      run = function(ctx) ctx:set("size", ctx:get "item") end })

    local function list() return { 1, 2 } end
    local function iterator(probe)
      local n = 0
      return function()
        if probe then probe() end
        n = n + 1
        return n <= 2 and n or nil
      end
    end
    local function group(items, options)
      options.input, options.output, options.max_concurrent = "items", "sizes", 1
      return flow.new("group"):add(flow.op("ItemsOp", function(ctx) ctx:set("items", items()) end))
        :add_grouped(ItemOp, options)
    end
    local function op(run, options)
      options = options or {}
      options.run = run
      return flow.op("KindOp", options)
    end
    -- Tasks that an op leaves to the run end with that.
    local function leaving(run) return flow.new("leaving"):add(op(run)):add(WaitOp) end

    spawn = leaving(function() flow.spawn(function() flow.sleep(0.1) probe() end) end)
    task_at_once = leaving(function() flow.spawn(probe) end)
    continuation = leaving(function() flow.spawn(function() flow.sleep(0.1) end):next(probe) end)
    nested_task = leaving(function() flow.spawn(function() flow.spawn(function() flow.sleep(0.1) probe() end) end) end)
    cleanup = op(function(ctx) ctx:defer(probe) end)
    retry_when = op(function() error "failed" end, { retry = { attempts = 2, when = probing } })
    retry_delay = op(function() error "failed" end, { retry = { attempts = 2, delay = function() probe() return 0 end } })
    needs = op(function() end, { needs = { items = probing } })
    gives = op(function(ctx) ctx:set("value", 1) end, { gives = { value = probing } })
    will_start = flow.new("outer"):add(PlainOp):will_start(probe)
    did_finish = flow.new("outer"):add(PlainOp):did_finish(probe)
    local inner_start = flow.new("inner"):add(PlainOp):will_start(probe)
    local inner_finish = flow.new("inner"):add(PlainOp):did_finish(probe)
    inner_will_start = op(function() inner_start:run() end)
    inner_did_finish = leaving(function() inner_finish:start() end)
    run_of_task = leaving(function() flow.spawn(function() flow.sleep(0.1) inner_start:run() end) end)
    run_of_callback = flow.new("outer"):add(PlainOp):will_start(function() flow.op("LateOp", probe):start() end):add(WaitOp)
    run_in_run = leaving(function()
      flow.op("MiddleOp", function() inner_start:start() probe() end):start()
    end)
    started = op(function() op(probe):start() end)
    started_alone = leaving(function() op(probe):start() end)
    started_and_run = op(function() op(probe):run() end)
    swift_start = leaving(function() start(op(probe)) end)
    swift_op_start = op(function(ctx) ctx:execute(flow.ops.StartOp) end)
    swift_async_start = op(function(ctx) ctx:execute(flow.ops.AwaitOp) end)
    started_by_swift = op(probe)
    graph_op = flow.graph("graph"):add(op(probe))
    graph_when = flow.graph("graph"):add(PlainOp, { when = probing })
    executed = op(function(ctx) ctx:execute(op(probe)) end)
    local limit = flow.limit("limit", 100)
    limited = op(function() limit:use(function() flow.sleep(0.1) probe() end) end)
    case = flow.new("cases"):case(probing):add(PlainOp):combine()
    iterated = group(function() return iterator(probe) end, {})
    label = group(list, { label = function(item) probe() return tostring(item) end })
    stop_when = group(list, { stop_when = function() probe() return false end })
    label_of_iterator = group(iterator, { label = function(item) probe() return tostring(item) end })
    listening = op(function() flow.on_event(print) end)
    swift_call = op(function() back(probe) end)
    swift_call_in_time = op(function() back_in_time(probe) end)
    """

  static let kinds = [
    "spawn", "task_at_once", "continuation", "nested_task", "cleanup", "retry_when", "retry_delay",
    "needs", "gives", "will_start", "did_finish", "inner_will_start", "inner_did_finish",
    "run_of_task", "run_of_callback", "run_in_run", "started", "started_alone", "started_and_run",
    "swift_start", "swift_op_start", "swift_async_start", "graph_op",
    "graph_when", "executed", "limited", "case", "iterated", "label", "stop_when",
    "label_of_iterator", "swift_call", "swift_call_in_time",
  ]

  private func thread(
    began: @escaping @Sendable () -> Void = {}
  ) async throws -> ScriptThread {
    try await ScriptThread(permissions: .restricted, virtualClock: true) { host in
      let vm = host.vm
      host.loop.cleanupGrace = .milliseconds(50)
      try vm.setGlobal("began", .reference(try vm.makeFunction("began") { began() }))
      let back = try host.makeAsyncFunction("back") { [unowned host] (function: LuaReference) in
        try await host.call(function, as: Void.self)
      }
      try vm.setGlobal("back", .reference(back))
      let backInTime = try vm.makeFunction("back_in_time") {
        [unowned host] (function: LuaReference) in
        _ = try host.call(function, deadline: .now.advanced(by: .seconds(600)))
      }
      try vm.setGlobal("back_in_time", .reference(backInTime))
      let start = try vm.makeFunction("start") { [unowned host] (value: LuaValue) in
        host.op(in: value)?.start(on: host.loop)
      }
      try vm.setGlobal("start", .reference(start))
      let owner = OwnHost(host: host)
      host.register(
        Op("StartOp") { [unowned host] context in
          try context.start(host.op(named: "started_by_swift"))
        })
      host.register(
        Op("AwaitOp") { context in
          _ = try await owner.host.op(named: "started_by_swift").start(on: context.loop).value
        })
      try vm.call(vm.load(Self.code, name: "kinds.lua"), as: Void.self)
    }
  }

  @Test("It has the globals of its request", arguments: kinds)
  func globals(kind: String) async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let tasks = (0..<2).map { _ in
        host.loop.task { _ = try? await request(kind, host, isolatesGlobals: true) }
      }
      for task in tasks { try await task.value }
      // Each has seen none, and set its own.
      let noted = try host.vm.call(
        host.vm.load("return #seen .. ' ' .. tostring(count)", name: "x"), as: String.self)
      #expect(noted == "2 nil")
    }
    await scripts.shutdown()
  }

  @Test("It doesn't see the events of other requests")
  func events() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let error = await #expect(throws: FlowError.self) {
        _ = try await request("listening", host)
      }
      let wanted = "bad use of 'on_event' (a request of a host doesn't see the events of others)"
      #expect(error?.message.description.contains(wanted) == true, "\(error as Any)")
    }
    await scripts.shutdown()
  }

  @Test("It counts into the limit of instructions of its request alone", arguments: kinds)
  func instructions(kind: String) async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      try setMode("busy", host)
      let limits = RequestLimits(instructions: 100_000)
      var errors: [String] = []
      do {
        _ = try await request(kind, host, limits: limits)
      } catch {
        errors.append("\(error)")
      }
      // Nobody waits for the end of a task or callback.
      errors += host.loop.unobservedFailures.map { "\($0.error.message)" }
      let wanted =
        ["needs", "gives"].contains(kind)
        ? "which failed" : "instruction limit of 100000 exceeded"
      #expect(errors.contains { $0.contains(wanted) }, "\(errors)")
      try setMode("note", host)
      _ = try? await request(kind, host, limits: limits)
      let noted = try host.vm.call(host.vm.load("return #seen", name: "x"), as: Int.self)
      #expect(noted == 1)
    }
    await scripts.shutdown()
  }

  @Test("It ends with its request while it is busy, and no other request does", arguments: kinds)
  func cancellation(kind: String) async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let scripts = try await thread(began: { beginning.finish() })
    let waiting = Task {
      try await scripts.perform { host in
        let wait = try host.vm.call(
          host.vm.load(
            "local flow = require 'flow' return flow.op('WaitOp', function() flow.sleep(1) end)",
            name: "x"))
        let value = try #require(wait.first)
        _ = try await host.run(try #require(host.op(in: value)))
      }
    }
    let busy = Task {
      try await scripts.perform { host in
        try setMode("busy", host)
        _ = try await request(kind, host)
      }
    }
    for await _ in began {}
    busy.cancel()
    let outcome = await busy.result
    // A run that has succeeded has ended before `did_finish`.
    if kind != "did_finish" {
      let error = #expect(throws: (any Error).self) { try outcome.get() }
      #expect(
        (error as? FlowError)?.kind == .cancelled || error is CancellationError,
        "\(error as Any)")
    }
    try await waiting.value
    await scripts.shutdown()
  }

  @Test("It ends with the time of its request while it is busy", arguments: kinds)
  func time(kind: String) async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      try setMode("busy", host)
      // Of busy code, on the system's clock; waits before it take none.
      _ = try? await request(kind, host, limits: RequestLimits(time: .milliseconds(250)))
      try setMode("note", host)
      _ = try? await request(kind, host)
      let noted = try host.vm.call(host.vm.load("return #seen", name: "x"), as: Int.self)
      #expect(noted == 1)
    }
    await scripts.shutdown()
  }
}

/// The host that an op of its own uses.
// Unchecked: only the thread of the host executes the op, which the compiler doesn't know.
private struct OwnHost: @unchecked Sendable {
  unowned let host: ScriptHost
}

private func setMode(_ mode: String, _ host: ScriptHost) throws {
  try host.vm.setGlobal("mode", .string(ByteString(mode)))
}

private nonisolated(nonsending) func request(
  _ kind: String, _ host: ScriptHost, limits: RequestLimits = RequestLimits(),
  isolatesGlobals: Bool = false
) async throws -> DataBucket {
  let op = try #require(host.op(in: host.vm.global(kind)))
  return try await host.run(
    op, data: ["items": 1], limits: limits, isolatesGlobals: isolatesGlobals)
}
