import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// The shares that requests of a host have in its memory and in the time of its thread.
@Suite("Shares of requests in a host")
struct HostRequestShareTests {
  private static let code = """
    local flow = require "flow"
    shared, grown = { turns = 0 }, {}
    HoldOp = flow.op("HoldOp", function(ctx)
      local held = {}
      for i = 1, ctx:get "kilobytes" do held[i] = ("x"):rep(1000) .. i end
      flow.sleep(1)
      ctx:set("held", #held)
    end)
    TaskOp = flow.op("TaskOp", function(ctx)
      flow.spawn(function()
        flow.sleep(1)
        local held = {}
        for i = 1, ctx:get "kilobytes" do held[i] = ("x"):rep(1000) .. i end
      end):await()
    end)
    GarbageOp = flow.op("GarbageOp", function(ctx)
      for i = 1, ctx:get "kilobytes" do local _ = ("x"):rep(1000) .. i end
      ctx:set("held", 0)
    end)
    CatchOp = flow.op("CatchOp", function(ctx)
      local ok = pcall(function()
        local held = {}
        for i = 1, 1e9 do held[i] = ("x"):rep(1000) .. i end
      end)
      collectgarbage()
      local held = {}
      for i = 1, 500 do held[i] = ("x"):rep(1000) .. i end
      ctx:set("held", ok and -1 or #held)
    end)
    AgainOp = flow.op("AgainOp", function(ctx)
      local caught = pcall(function()
        local held = {}
        for i = 1, 1e9 do held[i] = ("x"):rep(1000) .. i end
      end)
      collectgarbage()
      -- Meanwhile another one holds memory.
      flow.sleep(0.5)
      local held = { caught }
      for i = 1, 900 do held[i] = ("x"):rep(1000) .. i end
    end)
    -- The second one doesn't fit, but the traceback after it does.
    LargeOp = flow.op("LargeOp", function() return { ("x"):rep(600000), ("y"):rep(600000) } end)
    GrowOp = flow.op("GrowOp", function(ctx) for i = 1, 1e7 do grown[i] = true end end)

    local function spin() while not shared.done do end end
    local function marked(run)
      return flow.op("SpinOp", function(ctx)
        shared.turns = shared.turns + 1
        began()
        run()
        ctx:set("saw", shared.done)
      end)
    end
    plain = marked(spin)
    protected = marked(function() pcall(function() xpcall(spin, print) end) end)
    coroutines = marked(function()
      local outer = coroutine.wrap(function() coroutine.wrap(spin)() coroutine.yield(1) end)
      outer()
    end)
    metamethod = marked(function() local _ = setmetatable({}, { __index = function() spin() end }).x end)
    iterated = marked(function() for _ in function() spin() end do end end)
    task = marked(function() flow.spawn(function() flow.sleep(0.001) spin() end):await() end)
    DoneOp = flow.op("DoneOp", function(ctx) shared.done = true ctx:set("turns", shared.turns) end)

    -- Uses much of the language, and gives one number.
    SumOp = flow.op("SumOp", function(ctx)
      local function sum(...)
        local n = 0
        for _, v in ipairs { ... } do n = n + v end
        return n, ...
      end
      local meta = setmetatable({}, {
        __add = function(_, b) return b * 2 end, __lt = function() return true end,
        __concat = function(_, b) return "m" .. b end, __eq = function() return true end,
      })
      local total, text = 0, ""
      for i = 1, ctx:get "rounds" do
        local t <close> = setmetatable({}, { __close = function() total = total + 1 end })
        local first, a, b = sum(i, i & 7, i // 3)
        total = (total + first + a - b + (meta + i)) % 1000003
        if meta < i and not (i < 0) and i ~= 1.5 then total = total ~ (i % 5) end
        text = (meta .. (i % 10)) .. text:sub(1, 20)
        for part in text:gmatch "%d" do total = total + tonumber(part) end
        local ok, e = pcall(error, i)
        total = total + (ok and 0 or e % 3)
        total = total + select("#", table.unpack({ i, i, i }))
        goto next
        total = 0
        ::next::
      end
      ctx:set("sum", total .. text)
    end)
    """

  private func thread(
    memoryLimit: Int? = nil, began: @escaping @Sendable () -> Void = {}
  ) async throws -> ScriptThread {
    try await ScriptThread(
      permissions: .restricted, memoryLimit: memoryLimit, virtualClock: true
    ) { host in
      try host.vm.setGlobal("began", .reference(try host.vm.makeFunction("began") { began() }))
      try host.vm.call(host.vm.load(Self.code, name: "shares.lua"), as: Void.self)
    }
  }

  // MARK: Memory

  @Test(
    "A request that holds more than it may fails alone, of kind memory",
    arguments: ["HoldOp", "TaskOp", "GrowOp", "LargeOp"])
  func memory(name: String) async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let limits = RequestLimits(memory: 1_000_000)
      let hold = try op(host, "HoldOp")
      let others = (0..<10).map { _ in
        host.loop.task {
          try await host.run(hold, data: ["kilobytes": 500], limits: limits).integer("held")
        }
      }
      let error = await #expect(throws: FlowError.self) {
        _ = try await host.run(op(host, name), data: ["kilobytes": 2_000], limits: limits)
      }
      #expect(error?.kind == .memory, "\(error as Any)")
      #expect(error?.message == "memory limit of 1000000 bytes exceeded")
      for other in others { #expect(try await other.value == 500) }
      let free = try await host.run(hold, data: ["kilobytes": 5_000])
      #expect(free.integer("held") == 5_000)
    }
    await scripts.shutdown()
  }

  @Test("A request that has caught its own limit names the host's when that refuses memory")
  func limitOfHost() async throws {
    let scripts = try await thread(memoryLimit: 4_000_000)
    try await scripts.perform { host in
      let again = host.loop.task {
        _ = try await host.run(op(host, "AgainOp"), limits: RequestLimits(memory: 1_000_000))
      }
      let other = host.loop.task {
        try await host.run(op(host, "HoldOp"), data: ["kilobytes": 2_800]).integer("held")
      }
      let error = await #expect(throws: FlowError.self) { try await again.value }
      #expect(error?.kind == .memory, "\(error as Any)")
      #expect(error?.message == "not enough memory")
      let held = try await other.value
      #expect(held == 2_800)
    }
    await scripts.shutdown()
  }

  @Test("Garbage doesn't count, nor memory that others have", arguments: ["GarbageOp", "CatchOp"])
  func garbage(name: String) async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let hold = try op(host, "HoldOp")
      let other = host.loop.task {
        try await host.run(hold, data: ["kilobytes": 5_000]).integer("held")
      }
      let limits = RequestLimits(memory: 1_000_000)
      let data = try await host.run(op(host, name), data: ["kilobytes": 20_000], limits: limits)
      #expect(data.integer("held") == (name == "CatchOp" ? 500 : 0))
      #expect(try await other.value == 5_000)
    }
    await scripts.shutdown()
  }

  // MARK: Turns

  static let spinning = ["plain", "protected", "coroutines", "metamethod", "iterated", "task"]

  @Test("A busy request lets others run", arguments: spinning)
  func turns(kind: String) async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let scripts = try await thread(began: { beginning.finish() })
    // So that it ends where none has a turn.
    let limits = RequestLimits(time: .seconds(30))
    let busy = Task {
      try await scripts.perform { host in
        try await host.run(op(host, kind), limits: limits).boolean("saw")
      }
    }
    for await _ in began {}
    let turns = try await scripts.perform { host in
      try await host.run(op(host, "DoneOp")).integer("turns")
    }
    #expect(turns == 1)
    #expect(try await busy.value == true)
    await scripts.shutdown()
  }

  @Test("Code that lets others run again and again computes as code that doesn't")
  func results() async throws {
    let scripts = try await thread()
    let sums = try await withThrowingTaskGroup(of: String?.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try await scripts.perform { host in
            try await host.run(op(host, "SumOp"), data: ["rounds": 20_000]).string("sum")
          }
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    let alone = try await scripts.perform { host in
      let run = try op(host, "SumOp").start(on: host.loop, data: ["rounds": 20_000])
      return try await run.value.string("sum")
    }
    #expect(sums == [alone])
    await scripts.shutdown()
  }

  @Test("Cancelling one of two busy requests stops it, and not the other")
  func cancellation() async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let scripts = try await thread(began: { beginning.yield() })
    let busy = (0..<2).map { _ in
      Task {
        try await scripts.perform { host in
          try await host.run(op(host, "protected")).boolean("saw")
        }
      }
    }
    var count = 0
    for await _ in began {
      count += 1
      if count == 2 { break }
    }
    busy[0].cancel()
    let error = await #expect(throws: FlowError.self) { _ = try await busy[0].value }
    #expect(error?.kind == .cancelled)
    _ = try await scripts.perform { host in try await host.run(op(host, "DoneOp")).integer("turns")
    }
    #expect(try await busy[1].value == true)
    await scripts.shutdown()
  }
}

private func op(_ host: ScriptHost, _ name: String) throws -> Op {
  try #require(host.op(in: host.vm.global(name)))
}
