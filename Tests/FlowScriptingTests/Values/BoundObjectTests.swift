import FlowEngine
import FlowScripting
import LuaVM
import Testing

@Suite("Objects of bound classes in data buckets")
struct BoundObjectTests {
  // Sendable for a typed op; all of its thread.
  private class Account: LuaObject, @unchecked Sendable {
    var balance = 0
  }

  private final class SavingsAccount: Account, @unchecked Sendable {}

  private struct Spot: LuaObject, Equatable {
    var x: Int
  }

  /// A class that no state knows.
  private final class Session: LuaObject {}

  private func makeProgram() throws -> ScriptProgram {
    let program = try ScriptProgram()
    try program.vm.define(
      LuaClass<Account>("BankAccount") {
        $0.initializer { Account() }
        $0.property("balance", \.balance)
        $0.method("deposit") { (account, amount: Int) in account.balance += amount }
        $0.metamethod(.tostring) { (account: Account) in "account with \(account.balance)" }
      })
    try program.vm.define(
      LuaClass<Spot>("Spot") {
        $0.initializer { (x: Int) in Spot(x: x) }
        $0.property("x", writable: \.x)
        $0.mutatingMethod("move") { (spot: inout Spot, dx: Int) in spot.x += dx }
      })
    return program
  }

  @Test("A script calls methods of an object of Swift, and gives the same object back")
  func throughAScript() throws {
    let program = try makeProgram()
    let account = Account()
    let run = try program.endedRun(
      """
      return flow.op("DepositOp", { needs = { account = "Account" }, run = function(ctx)
        local account = ctx:get "account"
        account:deposit(50)
        ctx:set("copy", account)
        ctx:set("inside", { account })
        ctx:set("same", rawequal(account, ctx:get "account") and account == ctx:get("list")[1])
      end })
      """, data: ["account": FlowValue.object(account), "list": [.object(account)] as FlowValue])
    #expect(run.error == nil)
    #expect(account.balance == 50)
    #expect(run.data.object("copy", as: Account.self) === account)
    #expect(run.data["inside"]?[0]?.object(as: Account.self) === account)
    #expect(run.data["same"] == true)
    #expect(run.data["copy"] == run.data["account"])
    #expect(run.data["account"] == run.data["copy"])
    #expect(run.summary().description.contains("account with 50"))
  }

  @Test("An object that a script makes reaches ops of Swift, by either name of its class")
  func fromAScript() throws {
    struct CountOp: TypedOp {
      nonisolated(unsafe) static var seen: Account?
      let account = Input<Account>(object: "account")
      func run(_ data: OpData<CountOp>) { Self.seen = data.account }
    }
    let program = try makeProgram()
    program.host.register(CountOp().makeOp())
    let source = """
      return flow.new("count"):add(flow.op("MakeOp", function(ctx)
          local account = BankAccount()
          account:deposit(7)
          ctx:set("account", account)
        end))
        :add(flow.op("NeedOp", { needs = { account = "BankAccount" }, run = function() end }))
        :add(flow.op("NeedToo", { needs = { account = "Account" }, run = function() end }))
        :add(flow.ops.CountOp)
      """
    let run = try program.endedRun(source)
    #expect(run.error == nil)
    #expect(CountOp.seen?.balance == 7)
    CountOp.seen = nil
    // Swift has the object, also without the state.
    program.host.close()
    #expect(run.data.object("account", as: Account.self)?.balance == 7)
  }

  @Test("An object of a class below a bound one has its members, and counts as it in declarations")
  func subclasses() throws {
    let program = try makeProgram()
    let account = SavingsAccount()
    let run = try program.endedRun(
      """
      return flow.op("DepositOp", { needs = { account = "Account" }, run = function(ctx)
        ctx:get("account"):deposit(1)
      end })
      """, data: ["account": FlowValue.object(account)])
    #expect(run.error == nil)
    #expect(account.balance == 1)
  }

  @Test("All ops get the same structure, and Swift the one that scripts have changed")
  func structures() throws {
    let program = try makeProgram()
    let run = try program.endedRun(
      """
      return flow.new("move"):add(flow.op("MoveOp", function(ctx)
          ctx:get("spot"):move(2)
          ctx:get("spot").x = ctx:get("spot").x * 10
          ctx:set("made", Spot(5))
        end))
        :add(flow.op("SeeOp", function(ctx)
          ctx:get("made"):move(1)
          ctx:set("x", ctx:get("spot").x)
        end))
      """, data: ["spot": FlowValue.object(Spot(x: 1))])
    #expect(run.error == nil)
    #expect(run.data["x"] == 30)
    #expect(run.data.object("spot") == Spot(x: 30))
    #expect(run.data.object("made") == Spot(x: 6))
    #expect(run.data.object("made", as: Account.self) == nil)
  }

  @Test("Conditions, items of groups and the run's data have the objects, too")
  func elsewhere() throws {
    let program = try makeProgram()
    let accounts = [Account(), Account()]
    let results = try program.run(
      """
      local accounts = ...
      local total = 0
      local run = flow.new("all")
        :add_grouped(flow.op("DepositOp", function(ctx)
          ctx:get("item"):deposit(3)
        end), { input = "list", as = "item" })
        :case(function(data) return data.list[2].balance == 3 end)
        :add(flow.op("LastOp", function(ctx) ctx:set("first", ctx:get("list")[1]) end))
        :run { list = accounts }
      return run.data.first, tostring(run.error)
      """,
      accounts.luaValue(in: program.vm))
    let first = try #require(results.first)
    #expect(results.last == "nil")
    #expect(try Account.fromLuaValue(first, in: program.vm) === accounts[0])
    #expect(accounts.map(\.balance) == [3, 3])
  }

  @Test("Another state on the loop gets the object as one of its own class, or says what it lacks")
  func otherStates() throws {
    let first = try makeProgram()
    let made = try first.endedRun(
      "return flow.op('MakeOp', function(ctx) ctx:set('account', BankAccount()) end)")
    let account = try #require(made.data["account"])
    func read(_ prepare: (LuaVM) throws -> Void) throws -> Run {
      let host = try ScriptHost(vm: LuaVM(), loop: first.loop)
      defer { host.close() }
      try prepare(host.vm)
      let chunk = try host.vm.load(
        """
        return require("flow").op("ReadOp", function(ctx) ctx:get("account"):deposit(4) end)
        """, name: "other.lua")
      let op = try #require(try host.vm.call(chunk).first.flatMap { host.op(in: $0) })
      let run = op.start(on: first.loop, data: ["account": account])
      try run.waitUntilEnd()
      return run
    }
    let known = try read { vm in
      try vm.define(
        LuaClass<Account>("Other") {
          $0.method("deposit") { (account, amount: Int) in account.balance += amount }
        })
    }
    #expect(known.error == nil)
    #expect(account.object(as: Account.self)?.balance == 4)
    let message = try #require(try read { _ in }.error?.message.description)
    #expect(message.contains("BankAccount of another Lua state"))
  }

  @Test("An object of a class that the state doesn't know is one that scripts can only pass on")
  func unknownClasses() throws {
    let program = try makeProgram()
    let session = Session()
    let run = try program.endedRun(
      """
      return flow.op("PassOp", function(ctx)
        ctx:set("copy", ctx:get "session")
        local ok, e = pcall(function() return ctx:get("session").balance end)
        ctx:set("read", e.message)
      end)
      """, data: ["session": FlowValue.object(session), "spot": FlowValue.object(1...2)])
    #expect(run.error == nil)
    #expect(run.data.object("copy", as: Session.self) === session)
    #expect(run.data["read"] == "script.lua:3: can't read field 'balance' of a Swift object")
  }

  @Test("An object can't go to a worker, and the error names it and its class")
  func workers() throws {
    let program = try makeProgram()
    let source = """
      return flow.op("WorkOp", { thread = "worker", needs = { account = "any" }, run = print })
      """
    let run = try program.endedRun(source, data: ["account": FlowValue.object(Account())])
    #expect(
      run.error?.message == """
        the value of <account> is a userdata (BankAccount): it can't go to or from a worker
        """)
    #expect(run.error?.underlying is EncodeError)
  }

  @Test("An object is released when neither a script nor a run has it")
  func release() throws {
    final class Watched: Account, @unchecked Sendable {
      let onRelease: () -> Void
      init(onRelease: @escaping () -> Void) { self.onRelease = onRelease }
      deinit { onRelease() }
    }
    var released = 0
    let program = try makeProgram()
    do {
      let account = Watched { released += 1 }
      let run = try program.endedRun(
        """
        return flow.op("GetOp", function(ctx)
          ctx:set("copy", ctx:get "account")
          ctx:set("copy", nil)
          ctx:set("account", nil)
        end)
        """, data: ["account": FlowValue.object(account)])
      #expect(run.error == nil)
    }
    try program.collect()
    #expect(released == 1)
  }
}
