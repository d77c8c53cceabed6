@_spi(Scripting) import LuaVM
import Testing

@Suite("Coroutines that Swift resumes")
struct ThreadTests {
  private func thread(_ body: String, on host: TestHost) throws -> LuaCoroutine {
    try LuaCoroutine(host.load(body))
  }

  @Test("Values travel both ways")
  func values() throws {
    let host = try TestHost()
    let thread = try thread(
      """
      local a, b = ...
      local c = coroutine.yield(a + b, "first")
      local d, e = coroutine.yield(c)
      return d, e, nil
      """, on: host)
    #expect(thread.status == .suspended)
    #expect(try thread.resume(1, 2) == .yielded([3, "first"]))
    #expect(try thread.resume("again") == .yielded(["again"]))
    #expect(thread.status == .suspended)
    #expect(try thread.resume(true, 1.5) == .returned([true, 1.5, .nil]))
    #expect(thread.status == .dead)
    let error = #expect(throws: LuaError.self) { try thread.resume() }
    #expect(error?.message == "cannot resume dead coroutine")
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A generator ends a loop")
  func generator() throws {
    let host = try TestHost()
    let thread = try thread("for i = 1, 3 do coroutine.yield(i) end", on: host)
    var values: [LuaValue] = []
    while case .yielded(let yielded) = try thread.resume() { values += yielded }
    #expect(values == [1, 2, 3])
  }

  @Test("An error is thrown with its value, and a Swift error unchanged")
  func errors() throws {
    let host = try TestHost()
    try host.install("X", ["fail": { _ in throw Refusal(reason: "no") }])
    let raising = try thread("coroutine.yield() error({ code = 7 })", on: host)
    #expect(try raising.resume() == .yielded([]))
    let error = #expect(throws: LuaError.self) { try raising.resume() }
    guard case .reference(let table)? = error?.value else {
      Issue.record("the value of the error is missing")
      return
    }
    #expect(try host.vm.rawGet("code", in: table) == 7)
    #expect(raising.status == .dead)
    let failing = try thread("X.fail()", on: host)
    #expect(throws: Refusal(reason: "no")) { try failing.resume() }
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Closing runs pending cleanups, and throws what they raise")
  func closing() throws {
    let host = try TestHost()
    let body = """
      local closer <close> = setmetatable({}, { __close = function() closed = (closed or 0) + 1
        if ... then error(..., 0) end end })
      coroutine.yield()
      """
    let thread = try thread(body.replacing("...", with: "fails"), on: host)
    try thread.resume()
    try thread.close()
    #expect(thread.status == .dead)
    #expect(try host.text("return closed") == "1")
    try host.run("fails = 'broken'")
    let failing = try self.thread(body.replacing("...", with: "fails"), on: host)
    try failing.resume()
    let error = #expect(throws: LuaError.self) { try failing.close() }
    #expect(error?.value == "broken")
    try failing.close()
  }

  @Test("The status is that of coroutine.status")
  func status() throws {
    let host = try TestHost()
    let box = ThreadBox()
    try host.install(
      "X",
      [
        "status": { call in
          call.answer(.string(ByteString(box.thread?.status.rawValue ?? "none")))
        },
        "close": { call in
          try box.thread?.close()
          return call.answer()
        },
        "resume": { call in
          try box.thread?.resume()
          return call.answer()
        },
      ])
    box.thread = try thread(
      """
      local inner = coroutine.wrap(function() return X.status() end)
      return X.status(), inner(), select(2, pcall(X.close)), select(2, pcall(X.resume))
      """, on: host)
    #expect(
      try box.thread?.resume()
        == .returned([
          "running", "normal", "cannot close a running coroutine",
          "cannot resume non-suspended coroutine",
        ]))
    let value = try #require(try host.run("return coroutine.create(print)").first)
    #expect(LuaCoroutine(value)?.status == .suspended)
    #expect(LuaCoroutine(1) == nil)
    box.thread = nil
  }

  @Test("A wait in it runs the scheduler")
  func waits() throws {
    let host = try TestHost()
    let thread = try thread(
      "S.sleep(0.001) coroutine.yield('slept') S.sleep(0.001) return 'twice'", on: host)
    #expect(try thread.resume() == .yielded(["slept"]))
    #expect(try thread.resume() == .returned(["twice"]))
    // Also within an operation of the scheduler.
    try host.setGlobal(
      "resume",
      .reference(
        try host.vm.makeFunction { call in
          guard let thread = LuaCoroutine(try call.value(1)) else { return call.answer() }
          return call.answer(try thread.resume().values)
        }))
    #expect(
      try host.operationText(
        """
        local co = coroutine.create(function() S.sleep(0.001) coroutine.yield 'one' return 'two' end)
        return resume(co) .. resume(co)
        """) == "onetwo")
  }

  @Test("Many arguments and results")
  func many() throws {
    let host = try TestHost()
    let thread = try thread("return select('#', ...), string.rep('x', 1000), ...", on: host)
    let outcome = try thread.resume("a", 1, .nil, 2.5, true, "b", .nil)
    #expect(outcome.values.count == 9)
    #expect(outcome.values.first == 7)
    let wide = try self.thread("return table.unpack({}, 1, 5000)", on: host)
    #expect(try wide.resume().values.count == 5000)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Nothing works once the state is closed")
  func closed() throws {
    let host = try TestHost()
    let thread = try thread("return 1", on: host)
    host.vm.close()
    #expect(thread.status == .dead)
    #expect(throws: LuaError.self) { try thread.resume() }
    #expect(throws: LuaError.self) { try thread.close() }
    #expect(thread.traceback == "")
  }

  private final class ThreadBox {
    var thread: LuaCoroutine?
  }
}
