import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Requests of a host")
struct HostRequestTests {
  private static let rules = """
    local flow = require "flow"
    limit, seen = 10, {}
    local function helper() count = (count or 0) + 1 return count end
    function bump() shared = (shared or 0) + 1 return shared end
    CountOp = flow.op("CountOp", function(ctx)
      limit = limit + 1
      local first = helper() + bump()
      flow.sleep(1)
      local inner = flow.op("InnerOp", function(c) c:set("inner", helper() + bump()) end):run().data.inner
      local names = {}
      for name in pairs(_G) do names[name] = true end
      ctx:set("result", table.concat({ first, inner, limit, count, shared, _G.count,
        tostring(names.count and names.print) }, " "))
    end)
    AfterOp = flow.op("AfterOp", function(ctx)
      ctx:set("result", table.concat({ limit, tostring(count), tostring(shared), tostring(bump ~= nil) }, " "))
    end)
    SetOp = flow.op("SetOp", function() stays = "yes" end)
    BusyOp = flow.op("BusyOp", function(ctx)
      ctx:defer(function() cleaned = true end)
      began()
      while true do pcall(function() while true do end end) end
    end)
    StepsOp = flow.op("StepsOp", function(ctx)
      local steps = ctx:get "steps"
      for i = 1, steps do if i % 1000 == 0 then flow.sleep(0.001) end end
      ctx:set("done", true)
    end)
    CatchOp = flow.op("CatchOp", function(ctx) while true do pcall(function() while true do end end) end end)
    """

  private func thread(
    began: @escaping @Sendable () -> Void = {}
  ) async throws -> ScriptThread {
    try await ScriptThread(permissions: .restricted, virtualClock: true) { host in
      let function = try host.vm.makeFunction("began") { began() }
      try host.vm.setGlobal("began", .reference(function))
      try host.vm.call(host.vm.load(Self.rules, name: "rules.lua"), as: Void.self)
    }
  }

  @Test(
    "Each request has its own globals over those of the host, also in functions outside of its op")
  func globals() async throws {
    let scripts = try await thread()
    let results = try await withThrowingTaskGroup(of: String?.self) { group in
      for _ in 0..<20 {
        group.addTask {
          try await scripts.perform { host in
            try await host.run(op(host, "CountOp"), isolatesGlobals: true).string("result")
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(Set(results) == ["2 4 11 2 2 2 true"])
    let after = try await scripts.perform { host in
      let alone = try await host.run(op(host, "AfterOp")).string("result")
      // A request without globals of its own sets those of the host.
      _ = try await host.run(op(host, "SetOp"))
      return [alone, try host.vm.call(host.vm.load("return stays", name: "x"), as: String.self)]
    }
    #expect(after == ["10 nil nil true", "yes"])
    await scripts.shutdown()
  }

  @Test("A request that executes more instructions than it may fails alone, whatever it catches")
  func instructions() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let limits = RequestLimits(instructions: 100_000)
      for name in ["CatchOp", "StepsOp"] {
        let error = await #expect(throws: FlowError.self) {
          _ = try await host.run(
            op(host, name), data: ["steps": 1_000_000], limits: limits)
        }
        #expect(error?.kind == .instructions, "\(error as Any)")
        #expect(error?.message == "instruction limit of 100000 exceeded")
      }
      // Others have their own count, also beside it.
      let tasks = try (0..<10).map { _ in
        let steps = try op(host, "StepsOp")
        return host.loop.task {
          try await host.run(steps, data: ["steps": 5_000], limits: limits).boolean("done")
        }
      }
      for task in tasks { #expect(try await task.value == true) }
      let free = try await host.run(op(host, "StepsOp"), data: ["steps": 200_000])
      #expect(free.boolean("done") == true)
    }
    await scripts.shutdown()
  }

  @Test("Cancelling the caller of a busy request stops it alone, and its cleanups run")
  func cancellation() async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let scripts = try await thread(began: { beginning.finish() })
    let waiting = Task {
      try await scripts.perform { host in
        try await host.run(op(host, "CountOp"), isolatesGlobals: true).string("result")
      }
    }
    let busy = Task {
      try await scripts.perform { host in _ = try await host.run(op(host, "BusyOp")) }
    }
    for await _ in began {}
    busy.cancel()
    let error = await #expect(throws: FlowError.self) { try await busy.value }
    #expect(error?.kind == .cancelled)
    #expect(try await waiting.value != nil)
    let cleaned = try await scripts.perform { host in
      try host.vm.call(host.vm.load("return cleaned", name: "x"), as: Bool.self)
    }
    #expect(cleaned)
    await scripts.shutdown()
  }

  @Test("A request has a time limit, and another of the same op has none")
  func time() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let error = await #expect(throws: FlowError.self) {
        _ = try await host.run(
          op(host, "CountOp"), limits: RequestLimits(time: .milliseconds(500)))
      }
      #expect(error?.kind == .timeout)
      let unlimited = try await host.run(op(host, "CountOp"))
      #expect(unlimited.string("result") != nil)
    }
    await scripts.shutdown()
  }
}

private func op(_ host: ScriptHost, _ name: String) throws -> Op {
  try #require(host.op(in: host.vm.global(name)))
}
