@_spi(Scripting) import FlowEngine
import Testing

@Suite("Types of values")
struct ValueTypeTests {
  @Test("A type matches the values it names")
  func matchesWhatItNames() throws {
    let cases: [(String, FlowValue, Bool)] = [
      ("string", FlowValue.bytes(""), true), ("string", .integer(1), false),
      ("number", .integer(1), true), ("number", .number(1), true), ("integer", .number(1), false),
      ("float", .integer(1), false), ("boolean", .boolean(false), true), ("any", .integer(1), true),
      ("string?", .null, true), ("string?", .integer(1), false),
      ("string|integer", .integer(1), true),
      ("string|integer?", .null, true), ("string | integer", .boolean(true), false),
      ("string[]", list(["a"]), true), ("string[]", list([]), true),
      ("integer[]", list(["a"]), false),
      ("string[][]", [["a"], []].flowValue, true), ("table", list([]), true),
      ("string[]|integer", .integer(4), true), ("Point", list([]), false), ("string", .null, false),
    ]
    for (text, value, isMatch) in cases {
      let type = try FlowValueType.parse(ByteString(text))
      #expect((type.mismatch(value) == nil) == isMatch, "\(text) and \(value.logText)")
    }
  }

  /// A look at the kind of a value spares most checks; it must decide as they do.
  @Test(
    "Repeated checks of a declaration give the same result",
    arguments: [
      "any", "any?", "boolean", "string", "integer", "float", "number", "table", "string?", "Point",
      "string|integer", "nil", "boolean|float?", "string[]", "string[]|number", "any|table",
    ])
  func whatIsDeclaredIsCheckedTheSameEachTime(text: String) throws {
    let type = try FlowValueType.parse(ByteString(text))
    let values: [FlowValue] = [
      .null, .boolean(false), .integer(0), .number(0.5), .bytes("x"), list(["a"]), [1].flowValue,
      .opaque(TestOpaque(type: "Point", base: "table")),
    ]
    let loop = makeLoop()
    defer { loop.shutdown() }
    for value in values {
      let needing = Op("NeedOp", needs: ["v": "\(text)"]) { _ in }
      let giving = Op("GiveOp", gives: ["v": "\(text)"]) {
        $0.set($0.bucket.key("v"), value)
      }
      let isMatch = value.isNull ? type.isOptional : type.mismatch(value) == nil
      for _ in 1...2 {
        let needed = needing.start(on: loop, data: InitialData([("v", value)]))
        #expect((needed.state == .succeeded) == isMatch, "\(value.logText)")
        let given = giving.start(on: loop)
        #expect((given.state == .succeeded) == isMatch, "\(value.logText)")
        needed.markObserved()
        given.markObserved()
        // Through a parent bucket, too.
        let group = Flow().data("ns", [1]).data("v", value).addGrouped(
          needing, GroupDispatcher(input: "ns", as: "n")
        ).start(on: loop)
        #expect((group.state == .succeeded) == isMatch, "\(value.logText)")
        group.markObserved()
      }
    }
  }

  @Test("The name of a metatable matches its base type too")
  func namesOfMetatablesMatchTheirBaseToo() throws {
    let point = FlowValue.opaque(TestOpaque(type: "Point", base: "table"))
    #expect(try FlowValueType.parse("Point").mismatch(point) == nil)
    #expect(try FlowValueType.parse("table").mismatch(point) == nil)
    #expect(try FlowValueType.parse("FILE*").mismatch(point) == "FILE*")
    #expect(try FlowValueType.parse("userdata|Circle").mismatch(point) == "userdata|Circle")
  }

  @Test(
    "An almost correct type text is an error",
    arguments: [
      ("strng", "string"), ("Int", "integer"), ("bool", "boolean"), ("str", "string"),
      ("double", "float"), ("null", "any"), ("String", "string"), ("intger[]", "integer"),
      ("tabel|string", "table"), ("Number?", "number"), ("fucntion", "function"),
    ])
  func aNearMissIsAnError(text: String, meant: String) {
    #expect {
      try FlowValueType.parse(ByteString(text))
    } throws: { error in
      "\(error)".hasPrefix("unknown type '") && "\(error)".contains("did you mean '\(meant)'?)")
    }
  }

  @Test(
    "A malformed type text is an error",
    arguments: ["", "?", "string[", "string]", "|string", "string|", "a b", "string??", "1x"])
  func malformedTextIsAnError(text: String) {
    #expect(throws: TypeSyntaxError.self) { try FlowValueType.parse(ByteString(text)) }
  }

  @Test("A list of any depth is refused instead of recursing")
  func aListOfAnyDepthIsRefusedInsteadOfRecursing() {
    let text = "any" + String(repeating: "[]", count: 100_000)
    #expect(throws: TypeSyntaxError.self) { try FlowValueType.parse(ByteString(text)) }
  }

  @Test("A predicate gives its reason")
  func aPredicateNamesItsReason() {
    let even = FlowValueType.predicate(name: "even") { value in
      if case .integer(let number) = value, number % 2 == 0 { nil } else { "an even number" }
    }
    #expect(even.mismatch(.integer(2)) == nil)
    #expect(even.mismatch(.integer(3)) == "an even number")
  }
}
