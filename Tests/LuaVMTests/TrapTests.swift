import Glibc
@_spi(Scripting) import LuaVM
import Testing

/// Wrong use of the Swift API traps with a sentence; no script can reach these traps.
@Suite("Misuse of the Swift API")
struct TrapTests {
  private func expectSentence(_ result: ExitTest.Result?, _ sentence: String) {
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains(": Fatal error: " + sentence), "\(text)")
  }

  @Test("Using a state on another thread traps")
  func useOnAnotherThread() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let vm = Handed(try LuaVM())
      onThread { _ = try? vm.value.makeTable() }
    }
    expectSentence(result, "a Lua state was used on a thread other than the one that made it")
  }

  @Test("Closing a state on another thread traps")
  func closingOnAnotherThread() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let vm = Handed(try LuaVM())
      onThread { vm.value.close() }
    }
    expectSentence(result, "a Lua state was used on a thread other than the one that made it")
  }

  @Test("Releasing the last reference on another thread traps")
  func lastReleaseOnAnotherThread() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let vm = Handed(Unmanaged.passRetained(try LuaVM()))
      onThread { vm.value.release() }
    }
    expectSentence(result, "the last reference to an open Lua state was released on another thread")
  }

  @Test("Passing a value of another state traps")
  func valueOfAnotherState() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let one = try LuaVM()
      let other = try LuaVM()
      _ = try one.tostring(.reference(try other.makeTable()))
    }
    expectSentence(result, "a value of one Lua state was used with another")
  }

  @Test("Returning a value of another state traps")
  func valueOfAnotherStateAsAResult() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let one = try LuaVM()
      let other = try LuaVM()
      let table = try other.makeTable()
      let function = try one.makeFunction { $0.answer(.reference(table)) }
      _ = try one.call(function)
    }
    expectSentence(result, "a value of one Lua state was used with another")
  }

  @Test("Closing a state from the code it runs traps")
  func closingByTheCodeThatRuns() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let vm = try LuaVM()
      let function = try vm.makeFunction { call in
        call.vm.close()
        return call.answer()
      }
      _ = try vm.call(function)
    }
    expectSentence(result, "a Lua state was closed by code that runs in it")
  }

  @Test("Using a released coroutine traps")
  func coroutineAfterItsRelease() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let host = try TestHost()
      guard let coroutine = parked(try host.vm.start(host.load("S.sleep(1)"))) else { return }
      host.vm.release(coroutine, finished: false)
      _ = host.vm.resume(coroutine)
    }
    expectSentence(result, "a coroutine was used after its release")
  }

  @Test("Resuming a coroutine that isn't parked traps")
  func resumingWhatIsNotParked() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let host = try TestHost()
      let outcome = try host.vm.start(host.load("error 'failed'"))
      if case .failed(let coroutine) = outcome { _ = host.vm.resume(coroutine) }
    }
    expectSentence(result, "a coroutine that wasn't parked was resumed")
  }

  @Test("Binding arguments that are in no table traps")
  func boundArgumentsInNoTable() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let host = try TestHost()
      let function = try host.load("return 1")
      _ = LuaCallback(function, bound: (function, 1))
    }
    expectSentence(result, "a callback's bound arguments are no table")
  }
}

/// A script that ends the program.
@Suite("Exits from Lua code")
struct ExitTests {
  @Test("os.exit in a callback ends the process")
  func exitInACallback() async {
    await #expect(processExitsWith: .exitCode(3)) {
      let host = try TestHost(LuaConfiguration(refusesExit: false))
      let function = try host.load("os.exit(3)")
      try host.install("X", ["run": { call in call.answer(try call.vm.call(function)) }])
      try host.run("table.sort({1, 2}, function() coroutine.wrap(X.run)() end)")
    }
  }

  @Test("os.exit closes the state inside coroutines")
  func exitWithClosingInCoroutines() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent])
    {
      let host = try TestHost(LuaConfiguration(refusesExit: false))
      let counter = Counted.Counter()
      let type = try host.vm.defineObjectType("counted", of: Counted.self, methods: [:])
      try host.install(
        "X",
        [
          "new": { call in call.answer([.integer(Int64(counter.living))]) },
          "object": { call in call.answer(Counted(counter), type) },
        ])
      _ = try host.operation(
        """
        local o = X.object()
        gc = setmetatable({}, {__gc = function() print('finalized', X.new()) end})
        S.spawn(function() S.sleep(5) end)
        coroutine.wrap(function()
          S.sleep(1)
          os.exit(0, true)
        end)()
        """, deadline: -1_000_000_000, grace: 1_000_000)
      exit(9)
    }
    let text = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
    #expect(text.contains("finalized\t"))
  }

  @Test("os.exit closes the state while a stop is due")
  func exitWithClosingWhileAStopIsDue() async {
    await #expect(processExitsWith: .exitCode(4)) {
      let host = try TestHost(LuaConfiguration(refusesExit: false))
      _ = try host.operation(
        """
        gc = setmetatable({}, {__gc = function()
          local begin = os.clock()
          while os.clock() - begin < 0.4 do end
        end})
        os.exit(4, true)
        """, deadline: -200_000_000, grace: 1_000_000)
      exit(9)
    }
  }
}
