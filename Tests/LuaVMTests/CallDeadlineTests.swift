import LuaVM
import Testing

@Suite("Calls of a bare state with a deadline")
struct CallDeadlineTests {
  /// A deadline that no test reaches.
  private var never: ContinuousClock.Instant { .now.advanced(by: .seconds(3600)) }

  private func soon() -> ContinuousClock.Instant { .now.advanced(by: .milliseconds(20)) }

  /// After what a call does first, also on a machine that is busy.
  private func later() -> ContinuousClock.Instant { .now.advanced(by: .milliseconds(300)) }

  private func load(_ source: String, _ vm: LuaVM) throws -> LuaReference {
    try vm.load(ByteString(source), name: "script")
  }

  /// The error of a call; nil when it returns.
  private func error(_ body: () throws -> Void) -> LuaError? {
    do {
      try body()
      return nil
    } catch {
      return error as? LuaError
    }
  }

  /// Code can be run, and the stack is as before.
  private func expectUsable(_ vm: LuaVM) throws {
    #expect(try vm.call(try load("return 1 + 1", vm)) == [.integer(2)])
    #expect(try vm.call(try load("return 1 + 2", vm), deadline: never) == [.integer(3)])
    #expect(vm.stackDepth == 0)
  }

  @Test("A call in time returns all results, also nil and strings")
  func results() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    let function = try load("local a, b = ... return a, nil, b, 'x', nil", vm)
    #expect(
      try vm.call(function, [.integer(1), .string("two")], deadline: never)
        == [.integer(1), .nil, .string("two"), .string("x"), .nil])
    #expect(try vm.call(try load("return", vm), deadline: never).isEmpty)
    let table = try vm.call(try load("return { 7 }, print", vm), deadline: never)
    guard case .reference(let list)? = table.first, case .reference(let print)? = table.last else {
      Issue.record("references expected")
      return
    }
    #expect(list.kind == .table && print.kind == .function)
    let many = try vm.call(try load("return table.unpack({}, 1, 300)", vm), deadline: never)
    #expect(many == Array(repeating: .nil, count: 300))
    try expectUsable(vm)
  }

  @Test("An error of the function is thrown with its value, one of Swift unchanged")
  func errors() throws {
    struct OutOfPaper: Error {}
    let vm = try LuaVM()
    defer { vm.close() }
    let raised = error { _ = try vm.call(try load("error('no luck')", vm), deadline: never) }
    #expect(raised?.code == .runtime)
    #expect(raised?.message == "script:1: no luck")
    #expect(raised?.value == .string("script:1: no luck"))
    let fail = try vm.makeFunction { _ in throw OutOfPaper() }
    #expect(throws: OutOfPaper.self) { try vm.call(fail, deadline: never) }
    let yields = error {
      _ = try vm.call(try load("coroutine.yield(1)", vm), deadline: never)
    }
    #expect(yields?.message == "attempt to yield from outside a coroutine")
    try expectUsable(vm)
  }

  @Test(
    "A busy function is stopped at the deadline, also one that catches errors",
    arguments: [
      "while true do end", "while true do pcall(function() while true do end end) end",
      "while true do xpcall(function() while true do end end, function() while true do end end) end",
      "coroutine.wrap(function() while true do end end)()",
      "while true do pcall(table.sort, {3, 2, 1}, function() while true do end end) end",
      "local t = {} while true do t[#t + 1] = pcall(error, 'x') if #t > 9 then t = {} end end",
    ])
  func busy(_ source: String) throws {
    let vm = try LuaVM()
    defer { vm.close() }
    let stopped = error { _ = try vm.call(try load(source, vm), deadline: soon()) }
    #expect(stopped?.code == .timeout)
    #expect(stopped?.message == "the deadline of the call has passed")
    try expectUsable(vm)
  }

  @Test("A function isn't called when its deadline has passed")
  func past() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    let stopped = error {
      _ = try vm.call(
        try load("called = true", vm), deadline: .now.advanced(by: .seconds(-1)))
    }
    #expect(stopped?.code == .timeout)
    #expect(try vm.call(try load("return called", vm)) == [.nil])
    try expectUsable(vm)
  }

  @Test("Cleanups of a stopped call run, and are stopped after the grace")
  func cleanups() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    let closing = """
      local busy = ...
      local c <close> = setmetatable({}, { __close = function()
        closed = true
        while busy do end
        ended = true
      end })
      while true do end
      """
    let function = try load(closing, vm)
    for (isBusy, ended) in [(false, LuaValue.boolean(true)), (true, .nil)] {
      try vm.call(try load("closed, ended = nil", vm), as: Void.self)
      let stopped = error {
        _ = try vm.call(
          function, [.boolean(isBusy)], deadline: later(),
          grace: isBusy ? .milliseconds(200) : .seconds(60))
      }
      #expect(stopped?.code == .timeout)
      #expect(try vm.call(try load("return closed, ended", vm)) == [.boolean(true), ended])
      try expectUsable(vm)
    }
  }

  @Test("An inner call is stopped alone at its deadline, and with the outer one at its deadline")
  func nested() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    var (innerDeadline, codes): (ContinuousClock.Instant, [LuaError.Code?]) = (soon(), [])
    let busy = try load("while true do end", vm)
    let inner = try vm.makeFunction { [unowned vm] call in
      do {
        return call.answer(try vm.call(busy, deadline: innerDeadline).first ?? .nil)
      } catch {
        codes.append((error as? LuaError)?.code)
        throw error
      }
    }
    let outer = try load("local inner = ... print = nil pcall(inner) return 'went on'", vm)
    #expect(
      try vm.call(outer, [.reference(inner)], deadline: never) == [.string("went on")])
    innerDeadline = never
    let stopped = error { _ = try vm.call(outer, [.reference(inner)], deadline: later()) }
    #expect(stopped?.code == .timeout)
    #expect(codes == [.timeout, .stopped])
    try expectUsable(vm)
  }

  @Test("A wait in a call with a deadline is an error of the script")
  func wait() throws {
    let host = try TestHost()
    for source in [
      "S.sleep(1)", "coroutine.wrap(function() S.sleep(1) end)()",
      "table.sort({2, 1}, function() S.sleep(1) end)",
    ] {
      let refused = error { _ = try host.vm.call(try host.load(source), deadline: never) }
      // Where it can't yield, the scheduler runs in place.
      if source.contains("sort") {
        #expect(refused == nil)
      } else {
        #expect(
          refused?.message.description.hasSuffix(": attempt to await in a call with a deadline")
            == true)
      }
    }
    let caught = try host.vm.call(
      try host.load("return pcall(S.sleep, 1)"), deadline: never)
    #expect(caught.first == .boolean(false))
    try expectUsable(host.vm)
    #expect(try host.text("S.sleep(1) return 'awake'") == "awake")
  }

  @Test("Calls with a deadline don't leave coroutines or references behind")
  func balance() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    let function = try load("local x = ... if x == 2 then error(x) end return { x }, x", vm)
    func round() throws {
      for argument in 1...3 {
        _ = try? vm.call(function, [.integer(Int64(argument))], deadline: never)
      }
      try vm.collectGarbage()
    }
    try round()
    let (references, memory) = (vm.referenceCount, vm.memoryUsed)
    for _ in 0..<200 { try round() }
    #expect(vm.referenceCount == references)
    #expect(vm.memoryUsed <= memory + 4096)
  }
}
