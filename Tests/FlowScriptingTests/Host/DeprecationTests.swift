import FlowEngine
import FlowScripting
import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("Deprecations of a Swift program")
struct DeprecationTests {
  private final class Account: LuaObject {
    var balance = 0
  }

  /// The texts that a host has reported.
  private final class Reports {
    var texts: [String] = []
    var isOnOtherThread = false
    private let thread = pthread_self()

    func add(_ text: ByteString) {
      texts.append(text.description)
      if pthread_equal(thread, pthread_self()) == 0 { isOnOtherThread = true }
    }
  }

  /// A program with deprecated members of a class, an op, a class of ops and a function.
  private func makeProgram() throws -> ScriptProgram {
    let program = try ScriptProgram()
    // Unowned: the state keeps the closures, and the host the state.
    unowned let host = program.host
    try program.vm.define(
      LuaClass<Account>("Account") {
        $0.initializer { Account() }
        $0.method("add") { (account, amount: Int) in account.balance += amount }
        $0.method("deposit") { (account, amount: Int) in
          try host.noteDeprecation(of: "Account:deposit", "use Account:add", since: "2.0")
          account.balance += amount
        }
        $0.property(
          "sum",
          get: { account in
            try host.noteDeprecation(of: "Account.sum", "use Account.balance")
            return account.balance
          })
        $0.property("balance", \.balance)
      })
    try program.vm.setGlobal(
      "now",
      .reference(
        program.vm.makeFunction("now") { () in
          try host.noteDeprecation(of: "now", "use flow.now")
          return 7
        }))
    host.register(
      Op("OldOp") { context in context.log("old") }, deprecated: "use flow.ops.NewOp")
    host.register(Op("NewOp") { context in context.log("new") })
    host.register(
      OpClass("OldClassOp") { arguments in
        let number = try arguments.integer(1)
        return Op("OldClassOp") { context in context.log("\(number)") }
      }, deprecated: "use flow.ops.NewOp")
    host.register(
      OpClass("ModeOp") { arguments in
        if try arguments.string(1) == "fast" {
          try host.noteDeprecation(of: "mode 'fast' of ModeOp", "it is always fast")
        }
        return Op("ModeOp") { _ in }
      })
    return program
  }

  private let script = """
    local account = Account()
    for _ = 1, 3 do account:deposit(2) end
    account:add(1)
    local function sum() return account.sum end
    sum() sum()
    assert(account.balance == 7)
    local all = flow.new("all"):add(flow.ops.OldOp)
      :add(flow.ops.OldClassOp(1)):add(flow.ops.NewOp)
      :add(flow.ops.ModeOp "slow")
      :add(flow.ops.ModeOp "fast")
    assert(all:run().ok and now() == 7)
    for name in pairs(flow.ops) do assert(name) end
    return "done"
    """

  @Test("A host reports deprecated members, functions and ops once for each line")
  func reported() throws {
    let program = try makeProgram()
    let reports = Reports()
    program.host.deprecations = .reported { reports.add($0) }
    #expect(try program.text(script) == "done")
    #expect(
      reports.texts == [
        "script.lua:2: Account:deposit is deprecated since 2.0; use Account:add",
        "script.lua:4: Account.sum is deprecated; use Account.balance",
        "script.lua:7: flow.ops.OldOp is deprecated; use flow.ops.NewOp",
        "script.lua:8: flow.ops.OldClassOp is deprecated; use flow.ops.NewOp",
        "script.lua:10: mode 'fast' of ModeOp is deprecated; it is always fast",
        "script.lua:11: now is deprecated; use flow.now",
      ])
    // The second time nothing is new.
    #expect(try program.text(script) == "done")
    #expect(reports.texts.count == 6)
    // Outside of any code of a script there is no line.
    try program.host.noteDeprecation(of: "a", "b")
    #expect(reports.texts.last == "a is deprecated; b")
  }

  @Test("By default nothing happens")
  func ignored() throws {
    #expect(try makeProgram().text(script) == "done")
  }

  @Test("A host refuses deprecations with an error at the line")
  func refused() throws {
    let program = try makeProgram()
    program.host.deprecations = .refused
    func message(_ source: String) throws -> String {
      try program.text(
        """
        local _, e = pcall(function() \(source) end)
        return e.kind .. " " .. e.message
        """)
    }
    #expect(
      try message("Account():deposit(1)")
        == "usage script.lua:1: Account:deposit is deprecated since 2.0; use Account:add")
    #expect(
      try message("flow.ops.OldClassOp(1)")
        == "usage script.lua:1: flow.ops.OldClassOp is deprecated; use flow.ops.NewOp")
    #expect(
      try message("flow.ops.ModeOp 'fast'")
        == "usage script.lua:1: mode 'fast' of ModeOp is deprecated; it is always fast")
    #expect(try program.text("return flow.ops.NewOp:run().ok") == "true")
    #expect(throws: (any Error).self) { try program.host.noteDeprecation(of: "a", "b") }
  }

  @Test("An op that replaces a deprecated one, or follows it, isn't deprecated")
  func replaced() throws {
    let program = try makeProgram()
    program.host.deprecations = .refused
    program.host.register(Op("OldOp") { _ in }, replacing: true)
    #expect(try program.text("return flow.ops.OldOp:run().ok") == "true")
    #expect(program.host.unregister("OldClassOp"))
    program.host.register(Op("OldClassOp") { _ in })
    #expect(try program.text("return flow.ops.OldClassOp:run().ok") == "true")
  }

  @Test("Code in workers is reported on the thread of the host")
  func workers() throws {
    let program = try ScriptProgram()
    let reports = Reports()
    program.host.deprecations = .reported { reports.add($0) }
    program.host.workerLimit = 2
    let text = try program.text(
      """
      local Op = flow.op("SendOp", { thread = "worker", needs = { n = "integer" }, run = function()
        local function send() require "flow".deprecated("send", "send nothing") end
        send()
      end })
      return flow.new("all"):add_grouped(Op, { input = "list" }):run { list = { 1, 2, 3, 4, 5, 6 } }.ok
      """)
    #expect(text == "true")
    #expect(reports.texts == ["script.lua:3: send is deprecated; send nothing"])
    #expect(!reports.isOnOtherThread)
  }
}
