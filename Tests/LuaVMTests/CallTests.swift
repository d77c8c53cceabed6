@_spi(Scripting) import LuaVM
import Testing

@Suite("Calls from Swift")
struct CallTests {
  @Test("Any number of arguments and results", arguments: [0, 1, 2, 15, 16, 17, 40, 300])
  func anyNumber(count: Int) throws {
    let host = try TestHost()
    let echo = try host.load("return ...")
    let values = (0..<count).map { index -> LuaValue in
      switch index % 4 {
      case 0: .integer(Int64(index))
      case 1: "text \(index)"
      case 2: .nil
      default: .reference(echo)
      }
    }
    #expect(try host.vm.call(echo, values) == values)
    #expect(try host.vm.call(echo, values, traceback: true) == values)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Swift values as arguments, and results by their types")
  func typed() throws {
    let host = try TestHost()
    let count = try host.load("return select('#', ...), ...")
    #expect(try host.vm.call(count, as: Int.self) == 0)
    #expect(try host.vm.call(count, 1, "x", [true], 1.5, nil as Int?, as: Int.self) == 5)
    let (number, text, list, missing) = try host.vm.call(
      count, "x", [1, 2], as: (Int, String, [Int], Double?).self)
    #expect((number, text, list, missing) == (2, "x", [1, 2], nil))
    try host.vm.call(count, 1, as: Void.self)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("An error leaves nothing on the stack, and its value is there")
  func errors() throws {
    let host = try TestHost()
    let fail = try host.load("error(...)")
    for _ in 0..<3 {
      let error = #expect(throws: LuaError.self) {
        try host.vm.call(fail, ["text", 0])
      }
      #expect(error?.value == "text")
      #expect(throws: LuaError.self) { try host.vm.call(fail, 1, 2, as: Int.self) }
      #expect(throws: LuaError.self) { try host.vm.call(fail, "x", 0, as: Void.self) }
      #expect(throws: Unconvertible.self) {
        try host.vm.call(fail, 1, Unconvertible(), as: Void.self)
      }
    }
    #expect(host.vm.stackDepth == 0)
    let table = try host.vm.makeTable()
    #expect(throws: LuaError.self) { try host.vm.call(table, []) }
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Calls within calls, from coroutines, too")
  func nested() throws {
    let host = try TestHost()
    let vm = host.vm
    let recurse = try host.load(
      "return function(again, n) return n == 0 and 0 or 1 + again(n - 1) end")
    guard case .reference(let function)? = try vm.call(recurse).first else {
      Issue.record("no function")
      return
    }
    let box = ReferenceBox()
    box.reference = try vm.makeFunction("again") { [unowned vm] (n: Int) in
      guard let again = box.reference else { throw Refusal(reason: "too early") }
      return try vm.call(function, again, n, as: Int.self)
    }
    let again = try #require(box.reference)
    #expect(try vm.call(again, 20, as: Int.self) == 20)
    let wrapped = try host.load("return coroutine.wrap(function(...) return (...)(12) end)(...)")
    #expect(try vm.call(wrapped, again, as: Int.self) == 12)
    // As deep as C's stack allows.
    #expect(throws: LuaError.self) { try vm.call(again, 1000, as: Int.self) }
    #expect(vm.stackDepth == 0)
    box.reference = nil
  }

  @Test("Memory that runs out at any place is an error")
  func withoutMemory() throws {
    let host = try TestHost()
    let echo = try host.load("local t = { ... } return ('x'):rep(#t), ...")
    let long = String(repeating: "long ", count: 50)
    var failures: UInt64 = 0
    repeat {
      failures += 1
      host.vm.failAllocation(failures)
      do {
        _ = try host.vm.call(echo, long, [long], failures, as: String.self)
      } catch let error as LuaError {
        #expect(error.code == .memory)
      }
      #expect(host.vm.stackDepth == 0)
    } while host.vm.failAllocation(0) == 0 && failures < 1000
    #expect(failures > 3)
  }

  private struct Unconvertible: LuaValueConvertible, Error {
    func luaValue(in vm: LuaVM) throws -> LuaValue { throw self }
    static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> Unconvertible? { nil }
  }

  private final class ReferenceBox {
    var reference: LuaReference?
  }
}
