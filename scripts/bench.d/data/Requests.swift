import FlowEngine
import FlowScripting
import Foundation
import LuaVM

// Requests of a program that serves many tenants, each an op of a script.

/// The op: it needs an order and gives a decision, as a rule does.
private let rule = """
  local flow = require "flow"
  return flow.op("RuleOp", { needs = { total = "integer" }, gives = { decision = "string" },
    run = function(ctx)
      limit = 10000
      ctx:set("decision", ctx:get("total") > limit and "review" or "accept")
    end })
  """

private struct Verdict: Decodable {
  let decision: String
}

private func loadRule(_ host: ScriptHost) throws -> Op {
  let chunk = try host.vm.load(rule, name: "rule")
  guard let op = try host.vm.call(chunk).first.flatMap({ host.op(in: $0) }) else {
    fatalError("no op")
  }
  return op
}

private func check(_ data: DataBucket) throws {
  guard try data.decoded(as: Verdict.self).decision == "review" else {
    fatalError("a wrong verdict")
  }
}

/// Requests on a host that stays, each with limits and globals of its own, 100 at a time from several threads.
private func servePooled(_ count: Int64) async throws -> Taken {
  let scripts = try await ScriptThread(permissions: .restricted) { host in
    let chunk = try host.vm.load(rule, name: "rule")
    try host.vm.setGlobal("RuleOp", host.vm.call(chunk).first ?? .nil)
  }
  let limits = RequestLimits(time: .seconds(5), instructions: 1_000_000, memory: 4 << 20)
  let request: @Sendable () async throws -> Void = {
    try await scripts.perform { host in
      try check(
        try await host.run(
          host.op(named: "RuleOp"), data: ["total": 10_001], limits: limits, isolatesGlobals: true))
    }
  }
  let taken = try await timed {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        if index >= 100 { try await group.next() }
        group.addTask { try await request() }
      }
      try await group.waitForAll()
    }
  }
  await scripts.shutdown()
  return taken
}

/// Requests with a new host each.
private func serveFresh(_ count: Int64) throws -> Taken {
  try timed {
    for _ in 0..<count {
      let host = try ScriptHost(vm: LuaVM(configuration: .restricted))
      defer { host.close() }
      let run = try loadRule(host).start(on: host.loop, data: ["total": 10_001])
      try run.wait()
      try check(run.data)
    }
  }
}

/// Calls of a Lua function, asynchronous or not.
private func callFunction(_ count: Int64, isAsync: Bool) async throws -> Taken {
  let scripts = try await ScriptThread()
  let taken = try await scripts.perform { host in
    let chunk = try host.vm.load("return function(a, b) return a + b end", name: "add")
    guard case .reference(let add)? = try host.vm.call(chunk).first else {
      fatalError("no function")
    }
    var sum: Int64 = 0
    let taken =
      isAsync
      ? try await timed {
        for index in 0..<count { sum += try await host.call(add, [index, 1], as: Int64.self) }
      }
      : try timed {
        for index in 0..<count { sum += try host.vm.call(add, index, 1, as: Int64.self) }
      }
    guard sum == count * (count + 1) / 2 else { fatalError("a wrong sum") }
    return taken
  }
  await scripts.shutdown()
  return taken
}

/// Bytes of a script as `Data`, in bytes.
private func decodeData(_ size: Int64) throws -> Taken {
  let value = FlowValue.bytes(ByteString([UInt8](repeating: 7, count: Int(size))))
  return try timed {
    guard try value.decoded(as: Data.self).count == Int(size) else { fatalError("wrong bytes") }
  }
}

/// The time of requests and calls; nil for other names.
func measureRequests(_ name: String, _ count: Int64) async throws -> Taken? {
  switch name {
  case "pooled": try await servePooled(count)
  case "fresh": try serveFresh(count)
  case "call": try await callFunction(count, isAsync: true)
  case "call_at_once": try await callFunction(count, isAsync: false)
  case "bytes": try decodeData(count)
  default: nil
  }
}
