import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("States that share memory")
struct MemoryBudgetTests {
  private static let limit = 24 << 19
  private static let step = 64 << 10

  /// The memory of the states of several threads.
  private final class Uses: Sendable {
    let used = Locked<[Int]>([0, 0, 0])
  }

  private func state(_ budget: LuaMemoryBudget, own: Int = limit) throws -> LuaVM {
    var configuration = LuaConfiguration(memoryLimit: own)
    configuration.memoryBudget = budget
    let vm = try LuaVM(configuration: configuration)
    try run(
      vm,
      """
      function fill(n)
        held = {}
        for i = 1, n do held[i] = ("x"):rep(1 << 19) end
        return true
      end
      """)
    return vm
  }

  @discardableResult
  private func run(_ vm: LuaVM, _ source: String) throws -> [LuaValue] {
    try vm.call(try vm.load(ByteString(source), name: "t"))
  }

  /// Whether the state could hold so many MiB; the error is one of memory if it couldn't.
  private func fills(_ vm: LuaVM, _ count: Int) throws -> Bool {
    do {
      try run(vm, "fill(\(count))")
      return true
    } catch let error as LuaError {
      #expect(error.code == .memory)
      try run(vm, "held = nil")
      try vm.collectGarbage()
      return false
    }
  }

  @Test("What one state holds another can't have, until it is returned")
  func sharing() throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let (one, other) = (try state(budget), try state(budget))
    #expect(try fills(one, 14))
    #expect(budget.taken >= 14 << 19)
    #expect(try !fills(other, 14))
    #expect(try fills(other, 6))
    #expect(one.memoryUsed + other.memoryUsed <= budget.taken)
    #expect(budget.taken <= Self.limit)
    try run(one, "held = nil")
    try one.collectGarbage()
    #expect(budget.taken < (7 << 19) + 24 * Self.step)
    #expect(try fills(other, 14))
    one.close()
    #expect(budget.taken < 16 << 19)
    other.close()
    #expect(budget.taken == 0)
  }

  @Test("A script catches the error, and succeeds once the other state has returned its room")
  func caught() throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let (one, other) = (try state(budget), try state(budget))
    defer { other.close() }
    #expect(try fills(one, 20))
    let release = try other.makeFunction { call in
      one.close()
      return call.answer()
    }
    try other.setGlobal("release", .reference(release))
    let results = try run(
      other,
      """
      local ok, problem = pcall(fill, 14)
      release()
      return ok, problem, pcall(fill, 14)
      """)
    #expect(results.count == 4 && results[0] == .boolean(false) && results[2] == .boolean(true))
    #expect(results[1] == .string("not enough memory"))
  }

  @Test("The limit of one state holds in addition")
  func ownLimit() throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let vm = try state(budget, own: 8 << 19)
    defer { vm.close() }
    #expect(try !fills(vm, 10))
    #expect(try fills(vm, 6))
    vm.memoryLimit = 16 << 19
    #expect(try fills(vm, 10))
  }

  @Test("A limit that becomes lower, higher or none holds for all at once")
  func otherLimits() throws {
    let budget = try #require(LuaMemoryBudget(limit: nil))
    #expect(budget.limit == nil)
    let vm = try state(budget, own: 1 << 30)
    defer { vm.close() }
    #expect(try fills(vm, 40))
    budget.limit = 10 << 19
    #expect(budget.limit == 10 << 19)
    #expect(try !fills(vm, 12))
    budget.limit = 20 << 19
    #expect(try fills(vm, 12))
    // A state without a limit takes no part.
    vm.memoryLimit = nil
    #expect(budget.taken == 0)
    #expect(try fills(vm, 40))
    // It comes with what it holds, also if that is too much.
    vm.memoryLimit = 1 << 30
    #expect(budget.taken > 40 << 19)
    #expect(vm.isBeyondMemoryLimit() == false)
    #expect(try !fills(vm, 45))
    #expect(try fills(vm, 12))
    #expect(budget.taken < 20 << 19)
  }

  @Test("What is outside of a state takes room, and is returned when it is released")
  func outside() throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let (one, other) = (try state(budget), try state(budget))
    defer {
      one.close()
      other.close()
    }
    var held = 14 << 19
    one.memoryOutside = { _ in held }
    one.noteMemoryOutside()
    #expect(budget.taken > 14 << 19)
    #expect(!one.isBeyondMemoryLimit())
    #expect(try !fills(other, 14))
    // Beyond the limit it takes what is left: nobody else can have that.
    held = 30 << 19
    #expect(one.isBeyondMemoryLimit())
    #expect(budget.taken == Self.limit)
    #expect(try !fills(other, 1))
    held = 0
    one.settleBudget()
    #expect(!one.isBeyondMemoryLimit())
    #expect(try fills(other, 14))
  }

  @Test("A state that has nothing to do collects what others may need")
  func settling() throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let vm = try state(budget)
    defer { vm.close() }
    vm.settleBudget()
    try run(vm, "collectgarbage('stop') fill(14) held = nil")
    #expect(budget.taken > 14 << 19)
    #expect(vm.settleBudget())
    #expect(budget.taken < 1 << 19)
    // It isn't worth the time again.
    #expect(!vm.settleBudget())
    // Its memory is looked at once.
    try run(vm, "fill(14)")
    #expect(vm.settleBudget() && !vm.settleBudget())
    #expect(budget.taken > 14 << 19)
  }

  @Test("A state collects if another one didn't get what it needed")
  func refusals() throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let (one, other) = (try state(budget), try state(budget))
    defer {
      one.close()
      other.close()
    }
    #expect(try fills(one, 14))
    one.settleBudget()
    try run(one, "collectgarbage('stop') held = nil")
    #expect(!one.settleBudget())
    #expect(try !fills(other, 14))
    #expect(one.settleBudget())
    #expect(try fills(other, 14))
  }

  @Test("States on several threads never have more than the limit together")
  func threads() async throws {
    let budget = try #require(LuaMemoryBudget(limit: Self.limit))
    let uses = Uses()
    let rounds = 20
    await withTaskGroup(of: Void.self) { group in
      for place in 0..<3 {
        group.addTask { @Sendable in
          // Without a wait, so that the state stays on its thread.
          do {
            let vm = try state(budget)
            let note = try vm.makeFunction { call in
              let sum = uses.used.withLock {
                $0[place] = vm.memoryUsed
                return $0.reduce(0, +)
              }
              #expect(sum <= Self.limit + 3 * Self.step)
              return call.answer()
            }
            try vm.setGlobal("note", .reference(note))
            try run(
              vm,
              """
              local failures = 0
              for i = 1, \(rounds) do
                if not pcall(function()
                  local t = {}
                  for j = 1, 1 + i % 12 do t[j] = ("x"):rep(1 << 19) note() end
                end) then failures = failures + 1 end
                collectgarbage() note()
              end
              """)
            uses.used.withLock { $0[place] = 0 }
            vm.close()
          } catch {
            Issue.record(error)
          }
        }
      }
    }
    #expect(budget.taken == 0)
  }
}
