@_spi(Scripting) import LuaVM
import Testing

@Suite("What signals ask of a state")
struct RequestTests {
  /// A state with a function `ask` that does what a signal's handler does.
  private func asked(_ request: @escaping LuaVM.RequestFunction) throws -> LuaVM {
    let vm = try LuaVM()
    let ask = try vm.makeFunction { call in
      request(call.vm.requestContext)
      return call.answer()
    }
    try vm.setGlobal("ask", .reference(ask))
    return vm
  }

  /// Runs a chunk and returns its results as text.
  private func run(_ vm: LuaVM, _ text: ByteString) throws -> [String] {
    try vm.call(try vm.load(text, name: "chunk")).map { try vm.tostring($0).description }
  }

  @Test(
    "An interruption is raised where Lua runs next",
    arguments: [
      "ask()", "while true do ask() end",
      "coroutine.wrap(function() ask() while true do end end)()",
      "coroutine.wrap(function() coroutine.wrap(ask)() end)() while true do end",
      "for _ in coroutine.wrap(function() ask() coroutine.yield(1) end) do end",
      "debug.sethook(print, '', 1000000) ask()",
    ])
  func interruption(_ text: String) throws {
    let vm = try asked(LuaVM.interrupter)
    let values = try run(
      vm, ByteString("local ok, e = pcall(function() \(text) return 1 end) return ok, e"))
    #expect(values.first == "false")
    #expect(values.last?.hasSuffix("interrupted!") == true)
    #expect(!vm.hasRequest)
    // It comes once, and a script's hook is there again.
    #expect(try run(vm, "for i = 1, 1000 do end return 'on'") == ["on"])
  }

  @Test("A protected call catches the interruption of the function it calls")
  func protectedCall() throws {
    let vm = try asked(LuaVM.interrupter)
    let values = try run(vm, "local ok, e = pcall(ask) local x = 1 return ok, e")
    #expect(values.first == "false")
    #expect(values.last?.hasSuffix("interrupted!") == true)
    #expect(!vm.hasRequest)
  }

  @Test("An unhandled request stays until it is taken once")
  func taking() throws {
    let vm = try asked(LuaVM.interrupter)
    LuaVM.interrupter(vm.requestContext)
    LuaVM.terminator(vm.requestContext)
    #expect(vm.hasRequest)
    #expect(vm.takeTermination())
    #expect(!vm.takeTermination())
    #expect(vm.hasRequest)
    #expect(vm.takeInterruption())
    #expect(!vm.hasRequest)
    #expect(try run(vm, "return 1") == ["1"])
  }

  @Test(
    "A termination is notified between two instructions, and the code continues when the handler returns"
  )
  func termination() throws {
    let vm = try asked(LuaVM.terminator)
    var values: [String] = []
    vm.onTermination = { [unowned vm] in values = (try? run(vm, "return 1 + 1")) ?? [] }
    #expect(try run(vm, "ask() local x = 1 return 'on'") == ["on"])
    #expect(values == ["2"])
    #expect(!vm.hasRequest)
  }

  @Test("A request to a closed state has no effect")
  func closed() throws {
    let vm = try asked(LuaVM.interrupter)
    vm.close()
    LuaVM.interrupter(vm.requestContext)
    #expect(!vm.hasRequest)
  }
}
