import FlowEngine
import FlowScripting
import LuaVM
import Testing

@Suite("Cancellers that exist before their hosts")
struct ScriptCancellerTests {
  private static let busy: ScriptSource =
    "while true do pcall(function() while true do end end) end"

  @Test("A cancellation from another thread stops the script, with its reason")
  func aCancellationStopsTheScript() async throws {
    // Often: it comes at any moment between the preparation and the busy code.
    for _ in 0..<40 {
      let canceller = ScriptCanceller()
      let error = await #expect(throws: FlowError.self) {
        try await ScriptHost.run(script: Self.busy, canceller: canceller) { _ in
          Task.detached { canceller.cancel(reason: "the client has left") }
        }
      }
      #expect(error?.kind == .cancelled)
      #expect(error?.message == "cancelled: the client has left")
    }
  }

  @Test("A cancellation that comes before the host holds for it, and not for the next one")
  func aCancellationBeforeTheHostHoldsForIt() async throws {
    let canceller = ScriptCanceller()
    canceller.cancel(reason: "first")
    canceller.cancel(reason: "second")
    let preparations = Locked(0)
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: Self.busy, canceller: canceller) { _ in
        preparations.withLock { $0 += 1 }
      }
    }
    #expect(error?.message == "cancelled: first")
    #expect(preparations.withLock { $0 } == 0)
    let result = try await ScriptHost.run(script: "return 1", canceller: canceller)
    #expect(try result.value(as: Int.self) == 1)
    canceller.cancel()
    let next = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(script: Self.busy, canceller: canceller)
    }
    #expect(next?.kind == .cancelled)
  }

  @Test("A cancellation of the calling task doesn't hold for the next host")
  func aCancellationOfTheTaskHoldsForItsHost() async throws {
    let canceller = ScriptCanceller()
    for _ in 0..<20 {
      let running = Task {
        try await ScriptHost.run(script: "return 1", canceller: canceller)
      }
      // It may come before, within, or after the script.
      running.cancel()
      _ = await running.result
      let result = try await ScriptHost.run(script: "return 1", canceller: canceller)
      #expect(try result.value(as: Int.self) == 1)
    }
  }

  @Test("A thread of a host takes a canceller, and gives it back at its end")
  func aThreadTakesACanceller() async throws {
    let canceller = ScriptCanceller()
    canceller.cancel(reason: "not now")
    let early = await #expect(throws: FlowError.self) {
      _ = try await ScriptThread(canceller: canceller) { _ in Issue.record("it was prepared") }
    }
    #expect(early?.message == "cancelled: not now")
    let scripts = try await ScriptThread(canceller: canceller)
    #expect(scripts.canceller === canceller)
    let message = try await scripts.perform { host in
      Task.detached { canceller.cancel(reason: "enough") }
      let chunk = try host.vm.load("while true do end", name: "script")
      let error = #expect(throws: LuaError.self) { try host.vm.call(chunk) }
      return error?.message.description
    }
    #expect(message == "cancelled: enough")
    await scripts.shutdown(grace: .zero)
    // The code that the shutdown cancels is over.
    _ = try await ScriptHost.run(script: "return 1", canceller: canceller)
  }

  @Test("A busy preparation is cancelled, too")
  func aBusyPreparationIsCancelled() async throws {
    let canceller = ScriptCanceller()
    await #expect(throws: LuaError.self) {
      _ = try await ScriptThread(canceller: canceller) { host in
        Task.detached { canceller.cancel() }
        _ = try host.vm.call(try host.vm.load("while true do end", name: "script"))
      }
    }
  }

  @Test("A canceller for two hosts at a time traps, with the place of the call")
  func aCancellerForTwoHostsTraps() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let canceller = ScriptCanceller()
      let scripts = try await ScriptThread(canceller: canceller)
      _ = try await ScriptHost.run(script: "return 1", canceller: scripts.canceller)
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("ScriptCancellerTests.swift"), "\(text)")
    #expect(
      text.contains("a script canceller was given to a host while it belongs to another"), "\(text)"
    )
  }
}
