import FlowEngine
import FlowScripting
import LuaVM
import Testing

@Suite("Calls of Lua functions from async code")
struct AsyncCallTests {
  private static let rule = """
    local flow = require "flow"
    log = {}
    function rule(n) flow.sleep(n) log[#log + 1] = n return n * 2, "second" end
    function wait() local guard <close> = setmetatable({}, { __close = function() log[#log + 1] = "closed" end })
      forever() end
    function fail() flow.sleep(1) error "no luck" end
    """

  /// A thread on a virtual clock whose scripts have the functions above.
  private func thread(
    onWait: @escaping @Sendable () -> Void = {}
  ) async throws -> ScriptThread {
    try await ScriptThread(permissions: .restricted, virtualClock: true) { host in
      // Only a cancel ends it, whatever the clock says.
      let forever = try host.makeAsyncFunction("forever") {
        onWait()
        let (never, continuation) = AsyncStream<Void>.makeStream()
        for await _ in never {}
        continuation.finish()
      }
      try host.vm.setGlobal("forever", .reference(forever))
      try host.vm.call(host.vm.load(Self.rule, name: "rule.lua"), as: Void.self)
    }
  }

  private func log(_ scripts: ScriptThread) async throws -> String {
    try await scripts.perform { host in
      try host.vm.call(host.vm.load("return table.concat(log, ' ')", name: "x"), as: String.self)
    }
  }

  @Test("Calls wait beside each other, and each ends when its own wait does")
  func independent() async throws {
    let scripts = try await thread()
    let results = try await scripts.perform { host -> [Double] in
      let tasks = try [3, 1, 2].map { (n: Double) in
        let function = try function(host, "rule")
        return host.loop.task { try await host.call(function, [n], as: Double.self) }
      }
      var results: [Double] = []
      for task in tasks { results.append(try await task.value) }
      return results
    }
    #expect(results == [6, 2, 4])
    #expect(try await log(scripts) == "1.0 2.0 3.0")
    await scripts.shutdown()
  }

  @Test("Ten thousand calls wait at a time")
  func many() async throws {
    let scripts = try await thread()
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<10_000 {
        group.addTask {
          try await scripts.perform { host in
            try await host.call(function(host, "rule"), [1], as: Int.self)
          }
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(sum == 20_000)
    await scripts.shutdown()
  }

  @Test("Results are converted, errors have their kind and place, and a wrong type is named")
  func outcomes() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let rule = try function(host, "rule")
      #expect(try await host.call(rule, [0.5]).count == 2)
      try await host.call(rule, [0.5], as: Void.self)
      await #expect(throws: LuaConversionError.self) {
        try await host.call(rule, [0.5], as: Bool.self)
      }
      do {
        try await host.call(function(host, "fail"), as: Void.self)
        Issue.record("nothing was thrown")
      } catch let error as FlowError {
        #expect(error.kind == .error && error.message == "rule.lua:6: no luck", "\(error)")
      }
      #expect(host.unobservedFailures().isEmpty)
    }
    await scripts.shutdown()
  }

  @Test("Cancelling the task of a call stops its function, and runs its cleanups")
  func cancellation() async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let scripts = try await thread(onWait: { beginning.finish() })
    let task = Task {
      try await scripts.perform { host in
        try await host.call(function(host, "wait"), as: Void.self)
      }
    }
    for await _ in began {}
    task.cancel()
    let error = await #expect(throws: FlowError.self) { try await task.value }
    #expect(error?.kind == .cancelled)
    #expect(try await log(scripts) == "closed")
    await scripts.shutdown()
  }

  @Test("Calls that wait end with an error when their host is closed")
  func closing() async throws {
    let scripts = try await thread()
    let kind = try await scripts.perform { host -> FlowError.Kind? in
      let wait = try function(host, "wait")
      let call = host.loop.task { try await host.call(wait, as: Void.self) }
      call.markObserved()
      host.close()
      do { try await call.value } catch { return (error as? FlowError)?.kind }
      return nil
    }
    #expect(kind == .cancelled)
    await scripts.shutdown()
  }

  @Test("Calls with a deadline end when their own waits do")
  func deadlines() async throws {
    let scripts = try await thread()
    let later = ContinuousClock.now.advanced(by: .seconds(3600))
    let ends = try await scripts.perform { host -> [Int] in
      var ends: [Int] = []
      let tasks = try [1, 3, 2].map { n in
        let function = try function(host, "rule")
        return host.loop.task {
          let results = try await host.call(function, [n], deadline: later)
          #expect(results == [.integer(Int64(2 * n)), .string("second")])
          ends.append(n)
        }
      }
      for task in tasks { try await task.value }
      return ends
    }
    #expect(ends == [1, 2, 3])
    await scripts.shutdown()
  }

  @Test("A call ends at its deadline while it waits and while it is busy, and others continue")
  func stops() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let rule = try function(host, "rule")
      let other = host.loop.task { try await host.call(rule, [5], as: Int.self) }
      let chunks = [
        "require('flow').sleep(1e6)", "while true do pcall(function() while true do end end) end",
        "local flow = require 'flow' while true do pcall(flow.sleep, 1e6) end",
      ]
      for chunk in chunks {
        let chunk = try host.vm.load(ByteString(chunk), name: "chunk")
        let error = await #expect(throws: FlowError.self) {
          try await host.call(chunk, deadline: .now.advanced(by: .milliseconds(20)))
        }
        #expect(error?.kind == .timeout)
      }
      let late = await #expect(throws: FlowError.self) {
        try await host.call(rule, [1], deadline: .now.advanced(by: .seconds(-1)))
      }
      #expect(late?.kind == .timeout)
      #expect(try await other.value == 10)
    }
    await scripts.shutdown()
  }

  @Test("Calls that block the thread within each other are an error at some depth, and no crash")
  func nested() async throws {
    let scripts = try await thread()
    let errors = await withTaskGroup(of: FlowError?.self) { group in
      for _ in 0..<2_000 {
        group.addTask { () -> FlowError? in
          do {
            try await scripts.perform { host in try callInPlace(host) }
            return nil
          } catch { return error as? FlowError }
        }
      }
      return await group.reduce(into: [FlowError]()) { if let error = $1 { $0.append(error) } }
    }
    #expect(
      errors.allSatisfy {
        $0.kind == .usage && $0.message.hasPrefix("bad use of 'call' (100 calls with a deadline")
      })
    await scripts.shutdown()
  }
}

/// Calls a function that waits, in code that isn't async.
private func callInPlace(_ host: ScriptHost) throws {
  _ = try host.call(
    function(host, "rule"), [.integer(1)], deadline: .now.advanced(by: .seconds(3600)))
}

private func function(_ host: ScriptHost, _ name: String) throws -> LuaReference {
  guard case .reference(let function) = try host.vm.global(name) else {
    throw FlowError(.error, "no function \(name)")
  }
  return function
}
