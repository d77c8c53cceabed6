import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Task-local values in what scripts call")
struct TaskLocalTests {
  private enum Request {
    @TaskLocal static var id = "none"
  }

  @Test(
    "Async functions have the values of the code that the script works for, before and after its waits"
  )
  func asyncFunctions() async throws {
    let scripts = try await ScriptThread(permissions: .restricted, virtualClock: true) { host in
      let seen = try host.makeAsyncFunction("seen") { () async throws -> String in
        await Task.yield()
        return Request.id
      }
      try host.vm.setGlobal("seen", .reference(seen))
      try host.vm.call(
        host.vm.load(
          """
          local flow = require "flow"
          function rule()
            local first = seen()
            flow.sleep(1)
            local inner = flow.spawn(function() flow.sleep(1) return seen() end):await()
            local run = flow.op("InnerOp", function(ctx) flow.sleep(1) ctx:set("seen", seen()) end):run()
            return table.concat({ first, seen(), inner, run.data.seen }, " ")
          end
          RuleOp = flow.op("RuleOp", function(ctx) flow.sleep(1) ctx:set("seen", rule()) end)
          """, name: "rule.lua"), as: Void.self)
    }
    let results = try await withThrowingTaskGroup(of: [String].self) { group in
      for number in 0..<10 {
        group.addTask {
          try await Request.$id.withValue("\(number)") {
            try await scripts.perform { host in
              let rule: LuaReference = try host.vm.convert(host.vm.global("rule"))
              let called = try await host.call(rule, as: String.self)
              let op = try #require(host.op(in: host.vm.global("RuleOp")))
              let run = try await op.start(on: host.loop).value.string("seen")
              return [called, run ?? "nothing"]
            }
          }
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(
      results
        == Set(
          (0..<10).map { number in
            let all = Array(repeating: "\(number)", count: 4).joined(separator: " ")
            return [all, all]
          }))
    await scripts.shutdown()
  }

  @Test("A script that is run by one call has the values of its caller")
  func oneCall() async throws {
    let result = try await Request.$id.withValue("seven") {
      try await ScriptHost.run(
        script:
          "local flow = require 'flow' local a = seen() flow.sleep(0.001) return a, seen(), now()"
      ) { host in
        try host.vm.setGlobal(
          "seen",
          .reference(host.makeAsyncFunction("seen") { () async throws -> String in Request.id }))
        try host.vm.setGlobal(
          "now", .reference(host.vm.makeFunction("now") { () -> String in Request.id }))
      }
    }
    #expect(
      try (0..<3).map { try result.value($0, as: String.self) } == ["seven", "seven", "seven"])
  }
}
