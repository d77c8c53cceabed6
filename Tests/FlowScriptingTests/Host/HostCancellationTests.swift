import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// `cancel` from another thread, at any time: no test waits for a certain moment, only for the code's start.
@Suite("Cancelling a host")
struct HostCancellationTests {
  /// Calls `began` and then does what the test is about.
  ///
  /// A busy op is stopped within `start()`, in which it starts. One that waits sleeps before it calls `began`: its main
  /// chunk then awaits it in its `pcall`, where the cancellation is to come.
  ///
  /// The script calls `in_time(f)` for a call of Swift with a deadline that isn't reached.
  private func outcome(of source: String, reason: String? = "enough") async throws -> String {
    let scripts = try await ScriptThread()
    let canceller = scripts.canceller
    let text = try await scripts.perform { host in
      try host.vm.setGlobal("flow", .reference(host.module))
      let began = try host.vm.makeFunction { call in
        // From another thread, while the code executes or waits.
        Task.detached { canceller.cancel(reason: reason) }
        return call.answer()
      }
      try host.vm.setGlobal("began", .reference(began))
      let inTime = try host.vm.makeFunction { [unowned vm = host.vm] call in
        guard case .reference(let function) = try call.value(1) else { return call.answer() }
        let results = try vm.call(function, deadline: .now.advanced(by: .seconds(3600)))
        return call.answer(results.first ?? .nil)
      }
      try host.vm.setGlobal("in_time", .reference(inTime))
      let chunk = try host.vm.load(ByteString(source), name: "script")
      do {
        let results = try host.vm.call(chunk)
        return try host.vm.tostring(results.first ?? .nil).description
      } catch let error as LuaError {
        return "raised \(error.message)"
      }
    }
    await scripts.shutdown(grace: .zero)
    return text
  }

  @Test("A busy main chunk gets an error that names the reason")
  func aBusyMainChunkGetsAnError() async throws {
    #expect(try await outcome(of: "began() while true do end") == "raised cancelled: enough")
  }

  @Test("The error that a busy main chunk catches has the kind and the reason")
  func theErrorThatABusyMainChunkCatches() async throws {
    let text = try await outcome(
      of: """
        local ok, e = pcall(function() began() while true do end end)
        return tostring(ok) .. " " .. e.kind .. " " .. e.message
        """)
    #expect(text == "false cancelled cancelled: enough")
  }

  @Test("A main chunk that waits gets the error, too")
  func aMainChunkThatWaitsGetsTheError() async throws {
    #expect(try await outcome(of: "began() flow.sleep(3600)") == "raised cancelled: enough")
  }

  @Test("Without a reason the error is only the kind")
  func withoutAReason() async throws {
    let text = try await outcome(of: "began() flow.sleep(3600)", reason: nil)
    #expect(text == "raised cancelled")
  }

  @Test("A busy op is stopped, whatever it catches, and its main chunk is, too")
  func aBusyOpIsStopped() async throws {
    let text = try await outcome(
      of: """
        local op = flow.op("BusyOp", function()
          began()
          while true do pcall(function() while true do end end) end
        end)
        local run = flow.new("f"):add(op):start()
        local ok, e = pcall(function() run:await() end)
        return run.state .. " " .. tostring(ok) .. " " .. e.kind .. " " .. run.error.message
        """)
    #expect(text == "cancelled false cancelled cancelled: enough")
  }

  @Test("An op that waits is cancelled, and its cleanups run")
  func anOpThatWaitsIsCancelled() async throws {
    let text = try await outcome(
      of: """
        local cleaned = "not"
        local op = flow.op("WaitOp", function(ctx)
          ctx:defer(function() flow.sleep(0.001) cleaned = "cleaned" end)
          flow.sleep(0.001)
          began()
          flow.sleep(3600)
        end)
        local run = flow.new("f"):add(op):start()
        pcall(function() run:await() end)
        while run.state == "pending" do flow.sleep(0.001) end
        return run.state .. " " .. run.error.message .. " " .. cleaned
        """)
    #expect(text == "cancelled cancelled: enough cleaned")
  }

  @Test("An op in a call with a deadline is stopped with it, and no pcall of the op notices")
  func anOpInACallWithADeadlineIsStopped() async throws {
    let text = try await outcome(
      of: """
        local noticed = "no"
        local op = flow.op("BusyOp", function()
          pcall(in_time, function() began() while true do pcall(function() while true do end end) end end)
          noticed = "yes"
          while true do end
        end)
        local run = flow.new("f"):add(op):start()
        pcall(function() run:await() end)
        return run.state .. " " .. run.error.message .. " " .. noticed
        """)
    #expect(text == "cancelled cancelled: enough no")
  }

  @Test(
    "A call with a deadline throws the error to its main chunk, whatever the called function catches",
    arguments: [
      "while true do pcall(function() while true do end end) end",
      "in_time(function() while true do pcall(function() while true do end end) end end)",
    ])
  func aCallWithADeadlineThrowsTheError(_ busy: String) async throws {
    let text = try await outcome(
      of: """
        local ok, e = pcall(in_time, function() began() \(busy) end)
        return tostring(ok) .. " " .. e.kind .. " " .. e.message
        """)
    #expect(text == "false cancelled cancelled: enough")
    let waiting = try await outcome(
      of: "in_time(function() began() table.sort({2, 1}, function() flow.sleep(3600) end) end)")
    #expect(waiting == "raised cancelled: enough")
  }

  @Test("A `__close` that runs in a call with a deadline ends before the code is stopped")
  func aCloseInACallWithADeadlineEnds() async throws {
    let text = try await outcome(
      of: """
        local cleaned = "not cleaned"
        local op = flow.op("BusyOp", function()
          in_time(function()
            do
              local c <close> = setmetatable({}, { __close = function()
                began()
                local finish = os.clock() + 0.1
                while os.clock() < finish do end
                cleaned = "cleaned"
              end })
            end
            while true do end
          end)
        end)
        local run = flow.new("f"):add(op):start()
        pcall(function() run:await() end)
        return run.state .. " " .. cleaned
        """)
    #expect(text == "cancelled cleaned")
  }

  @Test("A wait of the main chunk beside a busy op is cancelled")
  func aWaitOfTheMainChunkBesideABusyOpIsCancelled() async throws {
    let text = try await outcome(
      of: """
        local op = flow.op("BusyOp", function() flow.sleep(0.001) began() while true do end end)
        flow.new("f"):add(op):start()
        flow.sleep(3600)
        """)
    #expect(text == "raised cancelled: enough")
  }

  @Test("A run that Swift code waits for is cancelled")
  func aRunThatSwiftCodeWaitsForIsCancelled() async throws {
    let scripts = try await ScriptThread()
    let canceller = scripts.canceller
    let message = try await scripts.perform { host in
      let op = Op("WaitOp") { (context) async throws in
        Task.detached { canceller.cancel(reason: "enough") }
        try await context.sleep(for: .seconds(3600))
      }
      let run = op.start(on: host.loop)
      try run.waitUntilEnd()
      return run.error?.message.description ?? "no error"
    }
    #expect(message == "cancelled: enough")
    await scripts.shutdown()
  }

  @Test("A host can be used again after a cancellation")
  func aHostCanBeUsedAgain() async throws {
    let scripts = try await ScriptThread()
    for number in 0..<20 {
      scripts.cancel(reason: "number \(number)")
      try await scripts.perform { host in
        let chunk = try host.vm.load("for i = 1, 100 do end return 1", name: "script")
        // The cancellation may come before, within, or after it.
        _ = try? host.vm.call(chunk)
      }
    }
    await scripts.shutdown()
  }

  @Test("Cancelling a host that was closed does nothing")
  func cancellingAHostThatWasClosedDoesNothing() async throws {
    let scripts = try await ScriptThread()
    await scripts.shutdown()
    scripts.cancel(reason: "late")
    await #expect(throws: FlowError.self) { try await scripts.perform { _ in } }
  }

  @Test("A shutdown ends scripts that are busy after the grace")
  func aShutdownEndsScriptsThatAreBusy() async throws {
    let scripts = try await ScriptThread(name: "busy")
    let (began, continuation) = AsyncStream<Void>.makeStream()
    let running = Task {
      try await scripts.perform { host in
        let begin = try host.vm.makeFunction { call in
          continuation.finish()
          return call.answer()
        }
        try host.vm.setGlobal("began", .reference(begin))
        let chunk = try host.vm.load("began() while true do end", name: "script")
        do {
          _ = try host.vm.call(chunk)
        } catch let error as LuaError {
          return error.message.description
        }
        return "not raised"
      }
    }
    for await _ in began {}
    await scripts.shutdown(grace: .milliseconds(1))
    #expect(try await running.value == "cancelled: the thread 'busy' is shut down")
  }
}
