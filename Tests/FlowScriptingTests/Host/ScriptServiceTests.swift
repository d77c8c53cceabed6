import FlowEngine
import FlowScripting
import LuaVM
import Testing

@Suite("Services of scripts")
struct ScriptServiceTests {
  /// A host whose scripts call `began` once they execute; the stream ends then.
  private func scripts() async throws -> (ScriptThread, began: AsyncStream<Void>) {
    let (began, continuation) = AsyncStream<Void>.makeStream()
    let scripts = try await ScriptThread { host in
      let begin = try host.vm.makeFunction { call in
        continuation.finish()
        return call.answer()
      }
      try host.vm.setGlobal("began", .reference(begin))
      let isShuttingDown = try host.vm.makeFunction { call in
        call.answer(.boolean(LoopService.isShuttingDown))
      }
      try host.vm.setGlobal("is_shutting_down", .reference(isShuttingDown))
    }
    return (scripts, began)
  }

  private static func call(_ source: String, _ host: ScriptHost) throws -> [LuaValue] {
    try host.vm.call(try host.vm.load(source, name: "script"))
  }

  /// Scripts that never end by themselves.
  private static let endless = [
    "began() while true do end",
    "began() require('flow').sleep(3600)",
    """
    local flow = require "flow"
    local op = flow.op("BusyOp", function() began() while true do pcall(error) end end)
    flow.new("f"):add(op):start():await()
    """,
  ]

  @Test("A shutdown stops a script, whether it is busy or waits", arguments: endless)
  func aShutdownStopsAScript(_ source: String) async throws {
    let (scripts, began) = try await scripts()
    let service = LoopService(on: scripts, reason: "restarting") { host in
      do {
        _ = try Self.call(source, host)
      } catch {
        #expect(host.flowError(from: error).message == "cancelled: restarting")
        throw error
      }
    }
    let task = Task { try await service.run() }
    for await _ in began {}
    service.shutdown()
    try await task.value
    // The host can be used again, and nothing is left that stops it.
    #expect(try await scripts.perform { host in try Self.call("return 1", host) == [1] })
    await scripts.shutdown()
  }

  @Test("Cancelling the task stops a busy script, also within the grace", arguments: endless)
  func cancellationStopsAScript(_ source: String) async throws {
    let (scripts, began) = try await scripts()
    let service = LoopService(on: scripts, grace: .seconds(3600)) { host in
      _ = try Self.call(source, host)
    }
    let task = Task { try await service.run() }
    for await _ in began {}
    service.shutdown()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    await scripts.shutdown()
  }

  @Test("Within the grace a script ends by itself")
  func withinTheGraceAScriptEnds() async throws {
    let (scripts, began) = try await scripts()
    let service = LoopService(on: scripts, grace: .seconds(3600)) { host in
      let results = try Self.call(
        "began() while not is_shutting_down() do require('flow').sleep(0.001) end return 7", host)
      #expect(results == [7])
    }
    let task = Task { try await service.run() }
    for await _ in began {}
    service.shutdown()
    try await task.value
    await scripts.shutdown()
  }

  @Test("After the grace a busy script is stopped")
  func afterTheGraceABusyScriptIsStopped() async throws {
    let (scripts, began) = try await scripts()
    let service = LoopService(on: scripts, grace: .milliseconds(20)) { host in
      _ = try Self.call(Self.endless[0], host)
    }
    let task = Task { try await service.run() }
    for await _ in began {}
    service.shutdown()
    try await task.value
    await scripts.shutdown()
  }

  @Test("The error of a script ends the service")
  func theErrorOfAScriptEndsTheService() async throws {
    let (scripts, _) = try await scripts()
    let service = LoopService(on: scripts) { host in _ = try Self.call("error('no', 0)", host) }
    let error = await #expect(throws: LuaError.self) { try await service.run() }
    #expect(error?.message == "no")
    await scripts.shutdown()
    await #expect(throws: CancellationError.self) {
      try await LoopService(on: scripts) { _ in }.run()
    }
  }
}
