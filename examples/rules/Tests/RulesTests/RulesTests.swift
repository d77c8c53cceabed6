import FlowEngine
import Foundation
import Testing

@testable import Rules

/// Metrics in memory; see `Locked` in `examples/job-server` for why it is no `Mutex`.
final class Counts: RunMetrics, @unchecked Sendable {
  private let lock = NSLock()
  private var counts: [String: Int64] = [:]

  func increment(counter label: String, dimensions: [(String, String)], by amount: Int64) {
    lock.withLock { counts[label, default: 0] += amount }
  }

  func record(timer label: String, dimensions: [(String, String)], nanoseconds: Int64) {}

  func record(gauge label: String, dimensions: [(String, String)], value: Double) {}

  var total: Int64 { lock.withLock { counts.values.reduce(0, +) } }
}

@Suite("Rules of many tenants")
struct RulesTests {
  private let metrics = Counts()
  private let customers = Customers(["Ada": 0.9, "Bob": 0.2])

  private func server(
    _ script: String, instructions: Int = Limits().instructions
  ) async throws -> RulesServer {
    var limits = Limits()
    limits.instructions = instructions
    // The instructions end what is endless. A computer that is busy with other tests reaches no time.
    limits.time = .seconds(100)
    let server = RulesServer(limits: limits, customers: customers, metrics: metrics)
    try await server.deploy("acme", script: script)
    return server
  }

  private func order(_ customer: String = "Ada", amount: Int = 1) -> Order {
    Order(customer: customer, lines: [.init(article: "tea", cents: 320, amount: amount)])
  }

  private func problem(_ script: String, _ customer: String = "Ada") async throws -> Problem? {
    let server = try await server(script)
    defer { Task { await server.shutdown() } }
    return await #expect(throws: Problem.self) {
      try await server.decide(order(customer), for: "acme", key: "k")
    }
  }

  private static let rule = """
    local flow = require "flow"
    local function larger(total) if total > 1000 then discount = 10 end end
    discount = 0
    return flow.op("RuleOp", function(ctx)
      local order = ctx:get "order"
      larger(order.total)
      flow.sleep(0.001)
      ctx:log("key " .. ctx:get "key")
      ctx:set("discount", discount)
      ctx:set("decision", order:score() > 0.5 and "yes" or "no, " .. order[1])
    end)
    """

  @Test("Requests run side by side, each with its own globals and trace", arguments: 0..<30)
  func requests(_ number: Int) async throws {
    let server = try await server(Self.rule)
    let verdicts = try await withThrowingTaskGroup(of: Verdict.self) { group in
      for index in 0..<20 {
        group.addTask {
          try await Trace.$id.withValue("\(number)/\(index)") {
            try await server.decide(
              order(index % 2 == 0 ? "Ada" : "Bob", amount: index), for: "acme", key: "key-\(index)"
            )
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(verdicts.filter { $0.discount == 10 }.count == 16)
    #expect(verdicts.filter { $0.decision == "no, tea" }.count == 10)
    #expect(await customers.traces == Set((0..<20).map { "\(number)/\($0)" }))
    #expect(metrics.total > 0)
    await server.shutdown()
  }

  @Test("A tenant's mistakes name the line, and nothing of the program")
  func mistakes() async throws {
    func script(_ body: String) -> String {
      "local flow = require 'flow'\nreturn flow.op('RuleOp', function(ctx)\n\(body)\nend)"
    }
    let misspelt = try await problem(script("return ctx:get('order').totl"))
    #expect(misspelt?.line == 3 && misspelt?.message.contains("did you mean 'total'?") == true)
    let unknown = try await problem(script("ctx:get('order'):score()"), "Mallory")
    #expect(unknown == Problem(.failed, "the service isn't available", line: 3))
    let file = try await problem(script("flow.fs.read '/etc/passwd'"))
    #expect(file?.kind == .failed && file?.message.contains("allows no files") == true)
    let busy = try await problem(
      script("while true do pcall(function() while true do end end) end"))
    #expect(busy?.kind == .tooMuch)
    let greedy = try await problem(
      script("local all = {} for i = 1, 1e4 do all[i] = ('x'):rep(1000) .. i end"))
    #expect(greedy?.kind == .tooMuch)
    #expect(greedy?.message == "memory limit of 4194304 bytes exceeded")
    let wrong = try await problem(script("ctx:set('decision', 7)"))
    #expect(wrong?.kind == .failed && wrong?.message.contains("decision") == true)
    let server = RulesServer(customers: customers, metrics: metrics)
    let syntax = await #expect(throws: Problem.self) {
      try await server.deploy("acme", script: "return\n= 3")
    }
    #expect(syntax?.line == 2)
  }

  @Test("A cancelled request stops alone, and a reload loses none")
  func cancellationAndReload() async throws {
    let server = try await server(
      """
      local flow = require "flow"
      return flow.op("RuleOp", function(ctx)
        local order = ctx:get "order"
        order:score()
        if order.customer == "Bob" then while true do end end
        flow.sleep(0.05)
        ctx:set("decision", "old") ctx:set("discount", 0)
      end)
      """, instructions: 1 << 60)
    let waiting = (0..<10).map { _ in
      Task { try await server.decide(order(), for: "acme", key: "k") }
    }
    let busy = Task {
      try await Trace.$id.withValue("busy") {
        try await server.decide(order("Bob"), for: "acme", key: "k")
      }
    }
    while await !customers.traces.contains("busy") { await Task.yield() }
    busy.cancel()
    let error = await #expect(throws: Problem.self) { try await busy.value }
    #expect(error?.kind == .cancelled)
    try await server.deploy("acme", script: Self.rule)
    for task in waiting { #expect(try await task.value.decision == "old") }
    #expect(try await server.decide(order(), for: "acme", key: "k").decision == "yes")
    await server.shutdown()
    let late = await #expect(throws: Problem.self) {
      try await server.decide(order(), for: "acme", key: "k")
    }
    #expect(late?.kind == .noTenant)
  }
}
