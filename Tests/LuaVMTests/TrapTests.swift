import Glibc
import LuaVM
import Testing

/// Wrong use of the Swift API traps with a sentence; no script can reach these traps.
@Suite struct TrapTests {
  private func expectSentence(_ result: ExitTest.Result?, _ sentence: String) {
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("LuaVM: " + sentence), "\(text)")
  }

  @Test func useOnAnotherThread() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let vm = Handed(try LuaVM())
      onThread { _ = try? vm.value.makeTable() }
    }
    expectSentence(result, "a Lua state was used on a thread other than the one that made it")
  }

  @Test func closingOnAnotherThread() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let vm = Handed(try LuaVM())
      onThread { vm.value.close() }
    }
    expectSentence(result, "a Lua state was used on a thread other than the one that made it")
  }

  @Test func lastReleaseOnAnotherThread() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let vm = Handed(Unmanaged.passRetained(try LuaVM()))
      onThread { vm.value.release() }
    }
    expectSentence(result, "the last reference to an open Lua state was released on another thread")
  }

  @Test func valueOfAnotherState() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let one = try LuaVM()
      let other = try LuaVM()
      _ = try one.tostring(.reference(try other.makeTable()))
    }
    expectSentence(result, "a value of one Lua state was used with another")
  }

  @Test func valueOfAnotherStateAsAResult() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let one = try LuaVM()
      let other = try LuaVM()
      let table = try other.makeTable()
      let function = try one.makeFunction { $0.answer(.reference(table)) }
      _ = try one.call(function)
    }
    expectSentence(result, "a value of one Lua state was used with another")
  }

  @Test func closingByTheCodeThatRuns() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
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

  @Test func coroutineAfterItsRelease() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let host = try TestHost()
      let step = try host.vm.start(host.load("S.sleep(1)"))
      host.vm.release(step.coroutine, finished: false)
      _ = host.vm.resume(step.coroutine)
    }
    expectSentence(result, "a coroutine was used after its release")
  }

  @Test func resumingWhatIsNotParked() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let host = try TestHost()
      let step = try host.vm.start(host.load("return 1"))
      _ = host.vm.resume(step.coroutine)
    }
    expectSentence(result, "a coroutine that wasn't parked was resumed")
  }

  @Test func operationWithoutItsArguments() async {
    let result = await #expect(
      processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
    ) {
      let host = try TestHost()
      _ = try LuaOperation(host.load("return 1"), arguments: nil, argumentCount: 1)
    }
    expectSentence(result, "an operation has 1 arguments but no table of them")
  }
}

/// A script that ends the program.
@Suite struct ExitTests {
  @Test func exitInACallback() async {
    await #expect(processExitsWith: .exitCode(3)) {
      let host = try TestHost()
      let function = try host.load("os.exit(3)")
      try host.install("X", ["run": { call in call.answer(try call.vm.call(function)) }])
      try host.run("table.sort({1, 2}, function() coroutine.wrap(X.run)() end)")
    }
  }

  @Test func exitWithClosingInCoroutines() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent])
    {
      let host = try TestHost()
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

  @Test(.enabled(if: !isThreadSanitized)) func exitWithClosingWhileAStopIsDue() async {
    await #expect(processExitsWith: .exitCode(4)) {
      let host = try TestHost()
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
