import FlowEngine
import FlowScripting
import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("The memory that a host shares with its workers", .serialized)
struct WorkerMemoryTests {
  private static let limit = 40 << 19

  private func program(
    workers: Int = 2, limit: Int? = limit, of each: Int? = nil
  ) throws -> ScriptHost {
    let host = try ScriptHost(vm: LuaVM(configuration: LuaConfiguration(memoryLimit: limit)))
    host.workerLimit = workers
    host.workerMemoryLimit = each
    try host.vm.setGlobal("flow", .reference(host.module))
    try run(
      host,
      """
      function fill(n)
        local held = {}
        for i = 1, n do held[i] = ("x"):rep(1 << 19) end
        return held
      end
      local fill = fill
      FillOp = flow.op("FillOp", { thread = "worker", run = function(ctx, n) fill(n) end })
      function problem(n)
        local run = FillOp(n):run()
        return run.error and run.error.message or "none"
      end
      """)
    return host
  }

  @discardableResult
  private func run(_ host: ScriptHost, _ source: String) throws -> [LuaValue] {
    try host.vm.call(try host.vm.load(ByteString(source), name: "script.lua"))
  }

  @Test(
    "Of two workers that need more than half each, one fails, alone, until the other has released it"
  )
  func two() throws {
    let host = try program()
    defer { host.close() }
    let results = try run(
      host,
      """
      local path = os.tmpname()
      os.remove(path)
      local fill = fill
      -- It holds 60 % until the other one has failed.
      local HoldOp = flow.op("HoldOp", { thread = "worker", run = function(ctx)
        local held = fill(24)
        ctx:set("holds", true)
        repeat flow.sleep(0.002) until io.open(path)
        held = nil
        ctx:set("held", 24)
      end })
      local TryOp = flow.op("TryOp", { thread = "worker", run = function(ctx)
        local ok, problem = pcall(fill, 24)
        ctx:set("ok", ok)
        ctx:set("problem", tostring(problem))
        io.open(path, "w"):close()
        local stop = os.time() + 20
        repeat
          flow.sleep(0.002)
          ok = pcall(fill, 24)
        until ok or os.time() > stop
        ctx:set("later", ok)
      end })
      local first = HoldOp:start()
      while not first.data.holds do flow.sleep(0.002) end
      local second = TryOp:run()
      assert(second.ok, second.error)
      first:wait()
      assert(first.ok, first.error)
      os.remove(path)
      return second.data.ok, second.data.problem, second.data.later, first.data.held
      """)
    #expect(
      results == [.boolean(false), .string("not enough memory"), .boolean(true), .integer(24)])
  }

  @Test("What the state of the host holds, and what is held for it, workers can't have")
  func ofTheHost() throws {
    let host = try program()
    defer { host.close() }
    try run(
      host,
      """
      assert(problem(24) == "none")
      held = fill(24)
      assert(problem(24):find("not enough memory"), problem(24))
      held = nil
      collectgarbage()
      assert(problem(24) == "none", problem(24))
      -- In a bucket: the string itself is garbage.
      local SetOp = flow.op("SetOp", function(ctx)
        ctx:set("a", ("x"):rep(9 << 19))
        ctx:set("b", ("y"):rep(9 << 19))
      end)
      run = SetOp:run()
      assert(run.ok, run.error)
      collectgarbage()
      assert(problem(26):find("not enough memory"), problem(26))
      run = nil
      collectgarbage()
      assert(problem(26) == "none", problem(26))
      """)
  }

  @Test("The host collects its garbage after a worker didn't get enough")
  func garbageOfTheHost() throws {
    let host = try program()
    defer { host.close() }
    try run(
      host,
      """
      collectgarbage("stop")
      held = fill(24)
      assert(problem(24):find("not enough memory"))
      held = nil
      -- It may hold what was there when it collected last; that is found out now.
      problem(24)
      assert(problem(24) == "none", problem(24))
      """)
  }

  @Test("The room of a worker returns when it is idle, and all of it when it ends")
  func idle() throws {
    let host = try program()
    try run(host, "for i = 1, 6 do assert(problem(30) == 'none') end")
    let budget = try #require(host.memoryBudget)
    #expect(budget.taken < 8 << 19)
    // The host has less than half of it: a worker may have almost everything.
    try run(host, "assert(problem(36) == 'none', problem(36))")
    host.close()
    #expect(budget.taken == 0)
  }

  @Test("Items of a group fail for themselves, and all together stay within the limit")
  func group() throws {
    let host = try program(workers: 4)
    defer { host.close() }
    try run(
      host,
      """
      local ns, fill = {}, fill
      for i = 1, 40 do ns[i] = i % 10 == 0 and 50 or 1 end
      local ItemOp = flow.op("ItemOp", { thread = "worker", primary_input = "n", primary_output = "m",
        run = function(ctx) ctx:set("m", #fill(ctx:get("n"))) end })
      local run = flow.new("g"):data { ns = ns }
        :add_grouped(ItemOp, { input = "ns", output = "out", allow_failure = true, failures = "bad" }):run()
      assert(run.ok, run.error)
      for _, failure in ipairs(run.data.bad) do
        assert(failure.error.message:find("not enough memory"), failure.error.message)
      end
      assert(#run.data.bad >= 4 and #run.data.bad < 40)
      -- The last worker may still collect.
      local stop = os.time() + 20
      while problem(24) ~= "none" do
        assert(os.time() < stop, problem(24))
        flow.sleep(0.002)
      end
      """)
    let budget = try #require(host.memoryBudget)
    #expect(budget.taken <= Self.limit)
  }

  @Test("A text that a worker sends to the host counts once")
  func travelling() throws {
    let host = try program(workers: 1)
    defer { host.close() }
    try run(
      host,
      """
      local BigOp = flow.op("BigOp", { thread = "worker", primary_output = "big", run = function(ctx)
        ctx:set("big", ("x"):rep(8 << 19))
      end })
      run = BigOp:run()
      assert(run.ok, run.error)
      assert(#run.data.big == 8 << 19)
      collectgarbage()
      assert(problem(26) == "none", problem(26))
      """)
  }

  @Test("Another limit of the host holds for its workers, also for those that exist")
  func otherLimit() throws {
    let host = try program(workers: 1, limit: nil)
    defer { host.close() }
    try run(host, "assert(problem(60) == 'none')")
    host.vm.memoryLimit = Self.limit
    try run(host, "assert(problem(60):find('not enough memory')) assert(problem(20) == 'none')")
    host.vm.memoryLimit = 100 << 19
    try run(host, "assert(problem(60) == 'none', problem(60))")
    host.vm.memoryLimit = 20 << 19
    try run(host, "assert(problem(30):find('not enough memory')) assert(problem(8) == 'none')")
    host.vm.memoryLimit = nil
    try run(host, "assert(problem(60) == 'none', problem(60))")
  }

  @Test("The limit of each single worker holds in addition")
  func ofEach() throws {
    let host = try program(limit: Self.limit, of: 12 << 19)
    defer { host.close() }
    try run(
      host,
      """
      assert(problem(14):find("not enough memory"), problem(14))
      assert(problem(6) == "none", problem(6))
      assert(#fill(24) == 24)
      """)
  }
}
