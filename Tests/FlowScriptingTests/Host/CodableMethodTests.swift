import FlowEngine
import FlowScripting
import LuaVM
import Testing

@Suite("Methods with Codable arguments and results")
struct CodableMethodTests {
  private struct Line: Codable, Sendable { var article: String, amount: Int }
  private struct Receipt: Codable { var lines: [Line], total: Int }
  private final class Order: LuaObject { var lines: [Line] = [] }

  private func program() throws -> ScriptProgram {
    let program = try ScriptProgram()
    try program.vm.define(
      LuaClass<Order>("Order") {
        $0.initializer { Order() }
        $0.method("add") { (order, line: Line, times: Int) in
          for _ in 0..<times { order.lines.append(line) }
        }
        $0.method("addAll") { (order, lines: [Line]) -> Int in
          order.lines += lines
          return order.lines.count
        }
        $0.method("receipt") { (order) -> Receipt in
          Receipt(lines: order.lines, total: order.lines.reduce(0) { $0 + $1.amount })
        }
        $0.asyncMethod("addLater") { (order, line: Line) async throws in
          await Task.yield()
          order.lines.append(line)
        }
        $0.asyncMethod("last") { (order) async throws -> Line? in
          await Task.yield()
          return order.lines.last
        }
      })
    return program
  }

  @Test("Tables become structures, and structures tables")
  func conversion() throws {
    let text = try program().text(
      """
      local order = Order()
      order:add({ article = "tea", amount = 2 }, 2)
      local count = order:addAll { { article = "milk", amount = 1 } }
      local none = Order():last()
      order:addLater { article = "jam", amount = 5 }
      local receipt = order:receipt()
      return table.concat({ count, receipt.total, #receipt.lines, receipt.lines[3].article,
        order:last().article, tostring(none) }, " ")
      """)
    #expect(text == "3 10 4 milk jam nil")
  }

  @Test("A part that is wrong is named, with the method and the argument")
  func errors() throws {
    let program = try program()
    for (call, part) in [
      ("add({ article = 'tea', amount = 'two' }, 1)", "bad argument #1 to 'Order:add' ("),
      ("add({ article = 'tea', amount = 2 })", "bad argument #2 to 'Order:add' ("),
      ("addAll { { article = 'tea' } }", "bad argument #1 to 'Order:addAll' ("),
      ("addLater(7)", "bad argument #1 to 'Order:addLater' ("),
    ] {
      let error = #expect(throws: LuaError.self) { try program.run("Order():\(call)") }
      #expect(error?.message.hasPrefix("script.lua:1: \(part)") == true, "\(error as Any)")
    }
    let error = #expect(throws: LuaError.self) {
      try program.run("Order():addAll { { article = 'tea', amount = 'two' } }")
    }
    #expect(error?.message.contains("[1].amount") == true, "\(error as Any)")
  }
}
