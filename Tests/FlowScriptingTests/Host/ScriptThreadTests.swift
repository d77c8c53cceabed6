import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Hosts on threads of their own")
struct ScriptThreadTests {
  @Test("Many tasks use one host")
  func manyTasksUseOneHost() async throws {
    let scripts = try await ScriptThread(name: "scripts") { host in
      host.register(Op("CountOp") { context in context.set("count", 1) })
      let chunk = try host.vm.load(
        "count = 0 function add(n) count = count + n return count end", name: "s")
      _ = try host.vm.call(chunk)
    }
    let total = try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 1...100 {
        group.addTask { _ = try await scripts.perform { host in try add(number, host) } }
      }
      try await group.waitForAll()
      return try await scripts.perform { host in try add(0, host) }
    }
    #expect(total == 5050)
    await scripts.shutdown()
  }

  @Test("An error of the preparation is thrown, and leaves no thread")
  func anErrorOfThePreparationIsThrown() async throws {
    let error = await #expect(throws: FlowError.self) {
      _ = try await ScriptThread { _ in throw FlowError(.error, "no ops today") }
    }
    #expect(error?.message == "no ops today")
    await #expect(throws: LuaError.self) {
      _ = try await ScriptThread(memoryLimit: 1000)
    }
  }

  @Test("An actor on the thread uses the host's loop")
  func anActorOnTheThreadUsesTheHostsLoop() async throws {
    let scripts = try await ScriptThread()
    let counter = Counter(scripts)
    try await counter.run()
    #expect(await counter.count == 1)
    await scripts.shutdown()
  }

  @Test(
    "A cancelled caller stops the run that it awaits, also while its code is busy",
    arguments: ["", "flow.sleep(0.001)", "table.sort({ 1, 2, 3, 4 }, function() count() end)"])
  func aCancelledCallerStopsABusyRun(_ before: String) async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let scripts = try await ScriptThread(permissions: .restricted) { host in
      let count = try host.vm.makeFunction("count") { beginning.finish() }
      try host.vm.setGlobal("count", .reference(count))
      let code = """
        local flow = require "flow"
        BusyOp = flow.op("BusyOp", function()
          \(before)
          count()
          local function first() return false end
          while true do
            pcall(function() for i = 1, 100000 do table.sort({ 1, 2, i }, first) end end)
          end
        end)
        """
      try host.vm.call(host.vm.load(ByteString(code), name: "busy.lua"), as: Void.self)
    }
    let task = Task {
      try await scripts.perform { host in
        let run = try host.op(named: "BusyOp").start(on: host.loop)
        _ = try await run.value(cancelsTask: true)
      }
    }
    for await _ in began {}
    task.cancel()
    let error = await #expect(throws: FlowError.self) { try await task.value }
    #expect(error?.kind == .cancelled)
    await scripts.shutdown()
  }

  @Test("os.exit raises, and the process continues")
  func osExitRaises() async throws {
    let scripts = try await ScriptThread()
    let error = await #expect(throws: LuaError.self) {
      try await scripts.perform { host in
        _ = try host.vm.call(try host.vm.load("os.exit(1)", name: "script"))
      }
    }
    #expect(error?.message.description.contains("os.exit") == true)
    await scripts.shutdown()
  }

  @Test("A script waits, and other code uses the host meanwhile")
  func aScriptWaitsAndOtherCodeUsesTheHost() async throws {
    let scripts = try await ScriptThread(virtualClock: true)
    let source: ByteString = """
      local flow = require "flow"
      return flow.new("f"):add(flow.op("WaitOp", function(ctx)
        flow.sleep(3600)
        ctx:set("answer", 42)
      end)):start()
      """
    let answer = try await scripts.perform { host in
      let chunk = try host.vm.load(source, name: "script")
      guard let run = try host.vm.call(chunk).first.flatMap(host.startedRun(in:)) else {
        return Int64(0)
      }
      return try await run.value.integer("answer") ?? 0
    }
    #expect(answer == 42)
    await scripts.shutdown()
  }
}

private func add(_ number: Int, _ host: ScriptHost) throws -> Int64 {
  let chunk = try host.vm.load("return add(...)", name: "call")
  guard case .integer(let sum)? = try host.vm.call(chunk, [.integer(Int64(number))]).first else {
    return -1
  }
  return sum
}

private actor Counter: FlowActor {
  nonisolated let thread: LoopThread
  var count = 0

  init(_ scripts: ScriptThread) { thread = scripts.thread }

  func run() async throws {
    let op = Op("CountOp") { _ in self.assumeIsolated { $0.count += 1 } }
    try await op.start(on: loop).wait()
  }
}
