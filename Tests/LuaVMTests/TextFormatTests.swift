import LuaVM
import Testing

/// JSON and CSV where memory runs out, and as Swift programs use them.
@Suite("JSON and CSV", .alsoWithout(.tableLayout))
struct TextFormatTests {
  let host: TestHost

  init() throws {
    host = try TestHost()
  }

  /// Strings with escapes, many levels, and tables that go to Lua in both ways.
  private var document: ByteString {
    let numbers = (1...300).map { "\($0).5" }.joined(separator: ",")
    let members = (1...200).map { "\"member \($0)\":{\"a\\n\":[\($0)]}" }.joined(separator: ",")
    let deep = String(repeating: "[", count: 50) + String(repeating: "]", count: 50)
    return ByteString("[[\(numbers)],{\(members)},\(deep),\"\\u00e9\\ud83d\\ude00\",null]")
  }

  @Test("A text is read, or memory runs out")
  func decoding() throws {
    let text = document
    try MemoryTests.failEach(host, "decode") {
      let value = try host.vm.decodeJSON(text)
      #expect(try host.text("local v = ... return #v, #v[1], v[4]", [value]) == "5 300 é😀")
    }
  }

  @Test("A value is written, or memory runs out", arguments: [true, false])
  func encoding(sorted: Bool) throws {
    let value = try host.vm.decodeJSON(document)
    var options = JSONWriting()
    options.sortsKeys = sorted
    let whole = try host.vm.encodeJSON(value, options).text
    try MemoryTests.failEach(host, "encode") {
      let text = try host.vm.encodeJSON(value, options).text
      #expect(text == whole)
    }
  }

  @Test("A row is read, or memory runs out")
  func rows() throws {
    var options = CSVReading()
    options.setType(.number, isOptional: true, ofColumn: 3)
    let text = Array("a,\"b\"\"c\",1.5,d\n".utf8)
    try MemoryTests.failEach(host, "rows") {
      let (_, place, table) = try host.vm.readCSV(text, from: 0, isLast: true, options)
      #expect(place.bytes == text.count && place.fields == 4)
      let row = try #require(table)
      #expect(try host.text("return table.concat(..., '|')", [.reference(row)]) == "a|b\"c|1.5|d")
    }
  }

  @Test("A limit of memory holds for texts, too")
  func limit() throws {
    let value = try host.run("local s = ('x'):rep(1000000) return { s, s, s, s, s, s, s, s }")[0]
    let before = host.vm.memoryUsed
    host.vm.memoryLimit = before + 4_000_000
    #expect(throws: LuaError.self) { try host.vm.encodeJSON(value) }
    host.vm.memoryLimit = nil
    try host.vm.collectGarbage()
    #expect(host.vm.memoryUsed <= before)
    let text = try host.vm.encodeJSON(value).text
    #expect(text.count == 8_000_000 + 25)
  }

  @Test("A text that isn't JSON is an error with its place")
  func problems() throws {
    let error = #expect(throws: JSONTextError.self) {
      try host.vm.decodeJSON("{\n\"a\": [1 2]}")
    }
    #expect(error?.message == "expected ',' or ']' at line 2, column 9")
    #expect(error?.offset == 11)
    let refused = #expect(throws: JSONValueError.self) {
      try host.vm.encodeJSON(try host.run("return { x = { print } }")[0])
    }
    #expect(refused?.message == "can't encode a value of type function at x[1]")
    #expect(host.vm.stackDepth == 0)
  }
}
