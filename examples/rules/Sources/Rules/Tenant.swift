import FlowEngine
import FlowScripting
import LuaVM

/// The limits of one request.
public struct Limits: Sendable {
  public var time = Duration.milliseconds(500)
  public var instructions = 20_000_000
  /// Of a request's Lua code.
  public var requestMemory = 4 << 20
  /// Of a tenant's host as a whole.
  public var memory = 32 << 20

  public init() {}
}

/// One version of a tenant's rule, on a host and a thread of its own.
final class Tenant: Sendable {
  private let scripts: ScriptThread
  private let limits: Limits

  /// Loads the script, which returns an op.
  init(
    _ name: String, script: String, limits: Limits, metrics: any RunMetrics & Sendable
  ) async throws {
    self.limits = limits
    scripts = try await ScriptThread(
      name: name, permissions: .restricted, memoryLimit: limits.memory, output: .discarded
    ) { host in
      host.loop.eventSinks.append(RunMetricsSink(metrics))
      // Errors of the program's own code say nothing about it.
      host.loop.errorMapper = { _ in FlowError(.error, "the service isn't available") }
      try host.vm.define(OrderObject.luaClass())
      let chunk = try host.vm.load(script, name: "\(name).lua")
      let results = try host.call(chunk, deadline: .now.advanced(by: limits.time))
      guard let rule = results.first, host.op(in: rule) != nil else {
        throw Problem(.badRule, "the script of '\(name)' returns no op")
      }
      try host.vm.setGlobal("rule", rule)
    }
  }

  func decide(_ order: Order, key: String, _ customers: Customers) async throws -> Verdict {
    let limits = RequestLimits(
      time: limits.time, instructions: limits.instructions, memory: limits.requestMemory)
    return try await scripts.perform { host in
      guard let rule = host.op(in: try host.vm.global("rule")) else {
        throw Problem(.badRule, "there is no rule")
      }
      let data = try await host.run(
        rule, data: ["order": OrderObject(order, customers), "key": FlowSecret(key)],
        limits: limits,
        isolatesGlobals: true)
      return try data.decoded(as: Verdict.self)
    }
  }

  func shutdown(grace: Duration) async { await scripts.shutdown(grace: grace) }
}
