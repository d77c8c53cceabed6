// The nanoseconds, of time and of CPU time, of a call of a Lua function from Swift, and of one of Swift from Lua:
//
//   BenchCalls call|list|callback|method COUNT
import Glibc
import LuaVM

final class Counter: LuaObject {
  var value = 0
}

typealias Taken = (wall: Duration, cpu: Double)

func timed(_ work: () throws -> Void) rethrows -> Taken {
  let begun = clock()
  let wall = try ContinuousClock().measure(work)
  return (wall, Double(clock() - begun) / Double(CLOCKS_PER_SEC))
}

func measure(_ name: String, _ count: Int64) throws -> Taken? {
  let vm = try LuaVM()
  defer { vm.close() }
  var sum: Int64 = 0
  func function(_ text: ByteString) throws -> LuaReference {
    guard case .reference(let function)? = try vm.call(vm.load(text, name: "bench")).first else {
      fatalError("no function")
    }
    return function
  }
  let add = try function("return function(a, b) return a + b end")
  switch name {
  case "list":
    return try timed {
      for index in 0..<count {
        if case .integer(let result)? = try vm.call(add, [.integer(index), .integer(1)]).first {
          sum += result
        }
      }
    }
  case "call":
    return try timed {
      for index in 0..<count { sum += try vm.call(add, index, 1, as: Int64.self) }
    }
  case "method":
    try vm.define(
      LuaClass<Counter>("Counter") {
        $0.initializer { Counter() }
        $0.method("add") { (counter, other: Int) in
          counter.value += other
          return counter.value
        }
      })
    let loop = try function(
      "return function(n) local c, x = Counter(), 0 for i = 1, n do x = c:add(i) end end")
    return try timed { _ = try vm.call(loop, [.integer(count)]) }
  case "callback":
    try vm.setGlobal(
      "add",
      .reference(
        vm.makeFunction { call in
          guard let a = call.integer(1), let b = call.integer(2) else { return call.answer() }
          return call.answer(.integer(a + b))
        }))
    let loop = try function(
      "return function(n) local add, x = add, 0 for i = 1, n do x = add(x, i) end end")
    return try timed { _ = try vm.call(loop, [.integer(count)]) }
  default:
    return nil
  }
}

let words = Array(CommandLine.arguments.dropFirst())
guard words.count == 2, let count = Int64(words[1]), count > 0,
  let taken = try measure(words[0], count)
else { fatalError("usage: BenchCalls call|list|callback|method COUNT") }
print(taken.wall / Duration.nanoseconds(1) / Double(count), taken.cpu * 1e9 / Double(count))
