import Glibc
@_spi(Scripting) import LuaVM
import Testing

/// References know the state they belong to.
@Suite("References to Lua values")
struct ReferenceTests {
  @Test("A reference is void after its state is closed")
  func referenceIsVoidAfterClosing() throws {
    let host = try TestHost()
    let vm = host.vm
    let table = try vm.makeTable()
    let function = try host.load("S.sleep(1)")
    let coroutine = try #require(parked(vm.start(function)))
    vm.close()
    vm.close()
    #expect(!table.isValid && !vm.isOpen)
    func isClosed(_ body: () throws -> Void) -> Bool {
      do {
        try body()
        return false
      } catch {
        return (error as? LuaError)?.code == .closed
      }
    }
    #expect(isClosed { _ = try vm.call(function) })
    #expect(isClosed { _ = try vm.get(.integer(1), in: table) })
    #expect(isClosed { try vm.set(.nil, "k", in: table) })
    #expect(isClosed { _ = try vm.pairs(of: table) })
    #expect(isClosed { _ = try vm.tostring(.reference(table)) })
    #expect(isClosed { _ = try vm.render(.reference(table), limit: 10) })
    #expect(isClosed { _ = try vm.makeTable() })
    #expect(isClosed { _ = try vm.makeFunction { $0.answer() } })
    func refusal(_ outcome: LuaOutcome) -> LuaError.Code? {
      guard case .refused(let error) = outcome else { return nil }
      return (error as? LuaError)?.code
    }
    #expect(refusal(vm.start(function)) == .closed)
    #expect(refusal(vm.resume(coroutine)) == .closed)
    #expect(refusal(LuaCallback(function).start(slot: 1, generation: 1)) == .closed)
    #expect(isClosed { _ = try vm.load("", name: "x") })
    #expect(isClosed { _ = try vm.element(1, of: table) })
    #expect(isClosed { try vm.collectGarbage() })
    #expect(isClosed { try vm.preload(["m"]) { $0.answer() } })
    #expect(isClosed { throw vm.failure(coroutine).error })
    #expect(vm.listCount(table) == nil)
    vm.release(coroutine, finished: false)
    vm.unwatch(coroutine)
    #expect(vm.typeName(of: .reference(table)) == "table")
    #expect(vm.traceback() == "" && vm.position == "")
    #expect(vm.referenceCount == 0 && vm.memoryUsed == 0)
  }

  private final class Group {
    let references: [LuaReference]

    init(references: [LuaReference]) {
      self.references = references
    }
  }

  @Test("References grow and are reused")
  func referencesGrowAndAreReused() throws {
    let host = try TestHost()
    let before = host.vm.referenceCount
    for _ in 0..<3 {
      var held: [LuaReference] = []
      for index in 0..<10_000 {
        held.append(try host.vm.makeTable(values: [.integer(Int64(index))]))
      }
      #expect(host.vm.referenceCount == before + 10_000)
      for index in stride(from: 0, to: 10_000, by: 777) {
        guard case .integer(Int64(index)) = try host.vm.element(1, of: held[index]) else {
          Issue.record("reference \(index) means another value")
          return
        }
      }
    }
    #expect(host.vm.referenceCount == before)
  }

  @Test("Releases on other threads are queued")
  func releasesOnOtherThreadsAreQueued() throws {
    let host = try TestHost()
    let before = host.vm.referenceCount
    for _ in 0..<5 {
      var threads: [pthread_t] = []
      for _ in 0..<4 {
        // The thread has the only references to them.
        let group = Unmanaged.passRetained(
          Group(references: try (0..<1000).map { _ in try host.vm.makeTable() }))
        let handed = Handed(group)
        threads.append(startThread { handed.value.release() })
        // Meanwhile the owner continues.
        for _ in 0..<200 { _ = try host.vm.makeTable() }
      }
      for thread in threads { join(thread) }
    }
    _ = try host.vm.makeTable()
    #expect(host.vm.referenceCount == before)
  }

  @Test("A registered coroutine may be collected")
  func registeredCoroutineMayBeCollected() throws {
    let host = try TestHost()
    final class Box {
      var callback: LuaReference?
    }
    let box = Box()
    try host.install(
      "X",
      [
        "register": { call in
          if case .reference(let function) = try call.value(1) { box.callback = function }
          return call.answer()
        }
      ])
    try host.run("coroutine.wrap(function() X.register(function() return 'called' end) end)()")
    for _ in 0..<3 { try host.vm.collectGarbage() }
    let callback = try #require(box.callback)
    guard case .string("called")? = try host.vm.call(callback).first else {
      Issue.record("the callback was lost")
      return
    }
  }

  @Test("A hundred thousand functions run in pooled coroutines")
  func hundredThousandFunctionsRunInThePool() throws {
    let host = try TestHost()
    let function = try host.load("return ...")
    let arguments = try host.vm.makeTable(values: [.integer(1)])
    _ = try host.vm.defineHandleType("handle", methods: [:])
    let callback = LuaCallback(
      function, bound: (arguments, 1), handle: .first, result: .userdata)
    let before = host.vm.referenceCount
    for index in 0..<repetitions(100_000) {
      // The first result is the handle, a userdata.
      guard
        case .returned(.reference(let handle), mark: 0) = callback.start(
          slot: UInt32(index), generation: 1)
      else {
        Issue.record("it returned no handle")
        return
      }
      #expect(handle.kind == .userdata)
    }
    #expect(host.vm.referenceCount <= before + 1)
  }

  @Test("Of the coroutines that many functions waited in at the same time a thousand stay")
  func fewCoroutinesStay() throws {
    let host = try TestHost()
    let before = host.vm.referenceCount
    for _ in 0..<3 {
      let text = try host.operationText(
        """
        local tasks = {}
        for i = 1, 3000 do tasks[i] = S.spawn(function() S.sleep(1) return i end) end
        for i = 1, 3000 do assert(S.await(tasks[i]) == i) end
        return "all"
        """)
      #expect(text == "all")
      try host.vm.collectGarbage()
      #expect((1024...1040).contains(host.vm.referenceCount - before))
    }
  }

  @Test("States on many threads are independent")
  func statesOfManyThreadsDoNotMeet() {
    let failures = Locked(0)
    let threads = (0..<4).map { number in
      startThread {
        do {
          for round in 0..<20 {
            let host = try TestHost()
            let text = try host.operationText(
              "local n = 0 for i = 1, 100 do n = n + coroutine.wrap(function() S.sleep(1) return i end)() end return n"
            )
            if text != "5050" { failures.withLock { $0 += 1 } }
            if (round + number).isMultiple(of: 2) { host.vm.close() }
          }
        } catch {
          failures.withLock { $0 += 1 }
        }
      }
    }
    for thread in threads { join(thread) }
    #expect(failures.withLock { $0 } == 0)
  }
}
