@_spi(Scripting) import FlowEngine
import Testing

@Suite("Conversion and printing of values")
struct ValueTests {
  @Test("Values print as in Lua")
  func printsAsLuaDoes() {
    let cases: [(FlowValue, String)] = [
      (.number(1), "1.0"), (.number(0.1), "0.1"), (.number(1e15), "1e+15"),
      (.number(1e100), "1e+100"), (.number(-0.0), "-0.0"), (.number(.infinity), "inf"),
      (.number(-.infinity), "-inf"), (.integer(.min), "-9223372036854775808"), (.null, "nil"),
      (.boolean(true), "true"), (.bytes("x\ny"), "x\ny"),
      (.number(3.14159265358979), "3.1415926535898"),
    ]
    for (value, text) in cases { #expect(value.logText.description == text) }
  }

  @Test("A value in a text of Swift reads as in the log")
  func interpolation() {
    let values: [FlowValue] = ["a@b.org", 3, 0.5, true, ["n": 1, "list": [1, "x"]], .null]
    #expect(
      values.map { "\($0)" } == ["a@b.org", "3", "0.5", "true", "{list = {1, x}, n = 1}", "nil"])
    #expect("\(FlowValue.secret("123456"))" == "<redacted>")
    #expect("\(Optional(FlowValue.bytes("a")) as Any)" == "Optional(a)")
    for value in values { #expect(value.plainCopy().map { "\($0)" } == "\(value)") }
  }

  @Test("NaN prints as in C")
  func nanPrintsAsCPrintsIt() {
    #expect(FlowValue.number(.nan).logText == "nan")
    #expect(FlowValue.number(-Double.nan).logText == "-nan")
  }

  @Test("Lists print within 120 characters")
  func listsPrintWithin120Characters() {
    #expect(list(["a", "b"]).logText == "{a, b}")
    #expect(FlowValue.opaque(ListValue([])).logText == "{}")
    let long = list(Array(repeating: "é", count: 200)).logText
    #expect(long.description.count == 120)
    #expect(long.description.hasSuffix("…"))
    // Exactly at the limit nothing is cut: 2 braces and 118 characters.
    let exact = list([String(repeating: "x", count: 118)]).logText.description
    #expect(exact.count == 120)
    #expect(exact.hasSuffix("x}"))
  }

  @Test("A list that holds itself can be printed and copied")
  func aListThatHoldsItselfPrintsAndCopies() throws {
    let knot = ListValue([.integer(1)])
    knot.append(.opaque(knot))
    keepReachable(knot)
    let text = FlowValue.opaque(knot).logText.description
    #expect(text == "{1, {…}}")
    let copy = try #require(knot.plainCopy())
    #expect(copy.tables == [.init(list: [.integer(1), .table(0)])])
  }

  @Test("A list that holds itself twice prints quickly")
  func aListThatHoldsItselfTwicePrintsAtOnce() {
    let knot = ListValue([])
    for _ in 0..<3 { knot.append(.opaque(knot)) }
    keepReachable(knot)
    let text = FlowValue.opaque(knot).logText.description
    #expect(text == "{{…}, {…}, {…}}")
    // Shared lists double at each level as well.
    var shared = ListValue([.integer(1)])
    for _ in 0..<100 { shared = ListValue([.opaque(shared), .opaque(shared)]) }
    // The expectation contains only the text: a failing one prints all its operands.
    let doubled = FlowValue.opaque(shared).logText.description
    #expect(doubled.count == 120)
  }

  @Test("A copy prints as its original")
  func aCopyPrintsAsTheTableItIsOf() {
    let inner = PlainValue.Table(
      list: [.table(0)], entries: [.init(key: .bytes("x"), value: .null)])
    let outer = PlainValue.Table(
      list: [.integer(1), .bytes("two"), .number(3)],
      entries: [
        .init(key: .bytes("b"), value: .boolean(true)), .init(key: .boolean(true), value: .null),
        .init(key: .bytes("a"), value: .table(1)), .init(key: .integer(9), value: .bytes("")),
        .init(key: .number(8.5), value: .bytes("é")), .init(key: .boolean(false), value: .table(9)),
      ])
    let value = PlainValue(.table(0), tables: [outer, inner])
    #expect(
      value.logText() == """
        {1, two, 3.0, 8.5 = é, 9 = , a = {{…}, x = nil}, b = true, false = {…}, true = nil}
        """)
    #expect(value.logText(limit: 9) == "{1, two,…")
    #expect(PlainValue(.bytes("text")).logText(limit: 2) == "text")
    let ordered: [(PlainValue.Atom, PlainValue.Atom)] = [
      (.integer(.max - 1), .integer(.max)), (.integer(.max), .number(0x1p63)),
      (.number(-0x1p64), .integer(.min)), (.integer(1), .number(1.5)), (.number(1.5), .integer(2)),
    ]
    for (low, high) in ordered {
      for keys in [[low, high], [high, low]] {
        let table = PlainValue.Table(entries: keys.map { .init(key: $0, value: $0) })
        let text = PlainValue(.table(0), tables: [table]).logText().description
        #expect(text.hasPrefix("{\(PlainValue(low).logText()) = "))
      }
    }
  }

  @Test("Tables of any depth print without recursion")
  func deepTablesArePrintedWithoutEnd() {
    var deep = ListValue([.integer(0)])
    for _ in 0..<1000 { deep = ListValue([.opaque(deep)]) }
    let text = deep.logText(limit: 1_000_000).description
    let expected = String(repeating: "{", count: 200) + "{…}" + String(repeating: "}", count: 200)
    #expect(text == expected)
    let tables = (1...1000).map { PlainValue.Table(list: [.table($0)]) }
    let copy = PlainValue(.table(0), tables: tables).logText(limit: 1_000_000).description
    #expect(copy == expected)
  }

  @Test("Stray continuation bytes count as characters")
  func bytesThatContinueNothingCountAsCharacters() {
    let stray = ByteString(Array(repeating: 0x80, count: 1000))
    #expect(stray.truncated(to: 10).count == 9 + 3)
    #expect(list([]).logText == "{}")
    #expect(FlowValue.opaque(ListValue([.bytes(stray), .integer(1)])).logText.count <= 119 + 3)
  }

  @Test("Deep lists are released without recursion", .smallStack)
  func deepListsAreReleasedWithoutRecursion() {
    var deep = FlowValue.integer(0)
    for _ in 0..<Scale.depth { deep = .opaque(ListValue([deep])) }
    deep = .null
    #expect(deep.isNull)
  }

  @Test("Keys are compared as bytes")
  func keysAreBytes() {
    let keys = KeyTable()
    let composed = keys.intern("caf\u{E9}")
    let decomposed = keys.intern("cafe\u{301}")
    #expect(composed != decomposed)
    #expect(keys.name(of: composed) == ByteString([99, 97, 102, 0xC3, 0xA9]))
    #expect(keys.intern("caf\u{E9}") == composed)
    let all = (0..<20_000).map { keys.intern(ByteString("key\($0)")) }
    #expect(Set(all).count == 20_000)
    #expect(keys.name(of: all[12_345]) == "key12345")
  }

  @Test("Text is truncated at a character, not inside one")
  func bytesAreTruncatedByCharacters() {
    #expect(ByteString("äöü").truncated(to: 3) == "äöü")
    #expect(ByteString("äöüß").truncated(to: 3) == "äö…")
    #expect(ByteString([0xFF, 0xFE, 0xFD]).truncated(to: 2) == ByteString([0xFF]) + "…")
  }

  @Test("A copy and the value made of it keep marks and nulls of JSON")
  func marksOfJSON() throws {
    let copy = PlainValue(
      .table(0),
      tables: [
        PlainValue.Table(
          entries: [
            PlainValue.Entry(key: .bytes("empty"), value: .table(1)),
            PlainValue.Entry(key: .bytes("none"), value: .table(2)),
            PlainValue.Entry(key: .bytes("list"), value: .table(3)),
          ], mark: .object),
        PlainValue.Table(mark: .array), PlainValue.Table(mark: .object),
        PlainValue.Table(list: [.jsonNull, .integer(1)], mark: .array),
      ])
    let value = copy.flowValue
    #expect(value.plainCopy() == copy)
    #expect(PlainValue(.jsonNull).flowValue.isJSONNull)
  }

  @Test("The null of JSON is a value, which an optional reads as nil")
  func nullOfJSON() {
    #expect(!FlowValue.jsonNull.isNull && !FlowValue.null.isJSONNull)
    #expect(FlowValue.jsonNull.logText == "null")
    let table = FlowValue.opaque(MapValue([("a", .jsonNull), ("b", .integer(1))]))
    #expect([String: Int?](flowValue: table) == ["a": nil, "b": 1])
    #expect([String: Int](flowValue: table) == nil)
    #expect(PlainValue?(flowValue: .jsonNull) == PlainValue(.jsonNull))
  }
}
