@_spi(Scripting) import LuaVM
import Testing

@Suite("Literals and equality of values")
struct ValueLiteralTests {
  @Test("Literals are values of their kinds")
  func literals() {
    let values: [LuaValue] = [1, 1.5, true, "x", .nil, "\(1 + 1)"]
    let kinds = values.map { value -> String in
      switch value {
      case .integer(1): "integer"
      case .number(1.5): "float"
      case .boolean(true): "boolean"
      case .string("x"): "string"
      case .nil: "nil"
      case .string("2"): "interpolated"
      default: "?"
      }
    }
    #expect(kinds == ["integer", "float", "boolean", "string", "nil", "interpolated"])
  }

  @Test("Values are equal as rawequal compares them")
  func equality() throws {
    let host = try TestHost()
    let values = try host.run(
      """
      t = setmetatable({}, { __eq = function() return true end })
      return nil, false, true, 0, -0.0, 1, 1.0, 1.5, 0/0, 2^63, math.maxinteger, math.mininteger,
        -2^63, "", "1", "caf\\u{E9}", "cafe\\u{301}", t, t, setmetatable({}, getmetatable(t)), print,
        coroutine.create(print)
      """)
    let rawEqual = try host.load("return rawequal(...)")
    for left in values {
      for right in values {
        let expected = try host.vm.call(rawEqual, [left, right]) == [true]
        #expect((left == right) == expected, "\(left) \(right)")
      }
    }
    #expect(values.count == 22)
  }

  @Test("References of different states differ, and those of a closed one are themselves")
  func references() throws {
    let (one, other) = (try TestHost(), try TestHost())
    let table = LuaValue.reference(try one.vm.makeTable())
    let foreign = LuaValue.reference(try other.vm.makeTable())
    #expect(table != foreign)
    one.vm.close()
    #expect(table == table)
    #expect(table != LuaValue.reference(try other.vm.makeTable()))
  }
}
