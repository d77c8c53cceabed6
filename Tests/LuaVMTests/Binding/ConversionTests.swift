@_spi(Scripting) import LuaVM
import Testing

@Suite("Conversion of Swift values")
struct ConversionTests {
  private func roundTrip<Value: LuaValueConvertible & Equatable>(
    _ value: Value, on host: TestHost, _ place: SourceLocation = #_sourceLocation
  ) throws {
    let echo = try host.load("return ...")
    #expect(
      try host.vm.call(echo, value, as: Value.self) == value, sourceLocation: place)
  }

  @Test("Values come back as they were")
  func roundTrips() throws {
    let host = try TestHost()
    try roundTrip(true, on: host)
    try roundTrip(Int.min, on: host)
    try roundTrip(Int64.max, on: host)
    try roundTrip(UInt8.max, on: host)
    try roundTrip(-0.5, on: host)
    try roundTrip(Float(0.1), on: host)
    try roundTrip("naïve \u{1F600}\0", on: host)
    try roundTrip(ByteString([0, 255, 10]), on: host)
    try roundTrip(nil as Int?, on: host)
    try roundTrip(7 as Int?, on: host)
    try roundTrip([1, 2, 3], on: host)
    try roundTrip([] as [String], on: host)
    try roundTrip([[1.5], []], on: host)
    try roundTrip(["a": [1], "b": []], on: host)
    try roundTrip([1: "one", 7: "seven"], on: host)
    try roundTrip(Color.green, on: host)
    try roundTrip(LuaValue.number(2), on: host)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("Integers and floats are converted where nothing is lost")
  func numbers() throws {
    let host = try TestHost()
    let echo = try host.load("return ...")
    #expect(try host.vm.call(echo, 3.0, as: Int.self) == 3)
    #expect(try host.vm.call(echo, 3, as: Double.self) == 3)
    for number in [0.5, .nan, .infinity, 1e300, -9.3e18] {
      #expect(throws: LuaConversionError.self) { try host.vm.call(echo, number, as: Int.self) }
    }
    #expect(throws: LuaError.self) { try host.vm.call(echo, UInt64.max, as: LuaValue.self) }
  }

  @Test(
    "A mismatch says where it is, and what was expected",
    arguments: [
      ("return 'x'", "result #1: integer expected, got string"),
      ("return 1.5", "result #1: integer expected, got 1.5"),
      ("return", "result #1: integer expected, got nil"),
    ])
  func mismatches(script: String, expected: String) throws {
    let host = try TestHost()
    let error = #expect(throws: LuaConversionError.self) {
      try host.vm.call(host.load(script), as: Int.self)
    }
    #expect(error?.description == expected)
  }

  @Test("A mismatch in a collection says at which element")
  func mismatchesWithin() throws {
    let host = try TestHost()
    func description<Value: LuaValueConvertible>(_ script: String, _ type: Value.Type) throws
      -> String?
    {
      let value = try #require(try host.run(script).first)
      return #expect(throws: LuaConversionError.self) { try host.vm.convert(value, to: type) }?
        .description
    }
    #expect(
      try description("return { 1, 'x' }", [Int].self) == "[2]: integer expected, got string")
    #expect(
      try description("return { a = { 1, {} } }", [String: [Int]].self)
        == "[a][2]: integer expected, got table")
    #expect(
      try description("return { [1] = 1 }", [String: Int].self)
        == "a key: string of UTF-8 expected, got 1")
    #expect(try description("return { x = 1 }", [Int].self) == "list expected, got table")
    #expect(try description("return 'blue'", Color.self) == "Color expected, got string")
    #expect(
      try description("return 300", UInt8.self) == "integer from 0 to 255 expected, got 300")
  }

  @Test("Typed functions: several results, none, and errors")
  func typedFunctions() throws {
    let host = try TestHost()
    var told: [String] = []
    try host.setGlobal(
      "tell", .reference(try host.vm.makeFunction("tell") { (text: String) in told.append(text) }))
    try host.setGlobal(
      "divide",
      .reference(
        try host.vm.makeFunction("divide") { (a: Int, b: Int) throws in
          if b == 0 { throw Refusal(reason: "zero") }
          return LuaResults(a / b, a % b)
        }))
    #expect(try host.texts("return divide(17, 5)") == ["3", "2"])
    #expect(try host.texts("return select('#', tell 'x')") == ["0"])
    #expect(told == ["x"])
    #expect(throws: Refusal(reason: "zero")) { try host.run("divide(1, 0)") }
    #expect(
      try host.text("return select(2, pcall(function() divide(1, 'x') end))")
        == "script:1: bad argument #2 to 'divide' (integer expected, got string)")
  }
}
