import FlowEngine
import Foundation
import Testing

@Suite("Values of Foundation")
struct FoundationValueTests {
  private struct Note: Codable, Equatable {
    var at: Date
    var due: Date?
    var data: Data
    var id: UUID
    var links: [URL]
  }

  @Test("Dates are seconds since 1970, data are strings, and addresses and UUIDs are texts")
  func forms() throws {
    let id = UUID()
    let link = try #require(URL(string: "https://example.com/a?b"))
    let note = Note(
      at: Date(timeIntervalSince1970: 1_700_000_000.5), due: Date(timeIntervalSince1970: -1),
      data: Data([0, 255]), id: id, links: [link])
    let value = try FlowValue(encoding: note)
    #expect(value["at"] == 1_700_000_000.5)
    #expect(value["due"] == -1.0)
    #expect(value["data"] == .bytes(ByteString([0, 255])))
    #expect(value["id"] == .bytes(ByteString(id.uuidString)))
    #expect(value["links"] == ["https://example.com/a?b"])
    #expect(try value.decoded() == note)
    #expect(
      try FlowValue.integer(1_700_000_000).decoded() == Date(timeIntervalSince1970: 1_700_000_000))
  }

  @Test("A value is JSON for Foundation's encoder, and JSON is a value for its decoder")
  func json() throws {
    let value: FlowValue = ["a": [1, 2.5, true, "x", .jsonNull], "b": [:]]
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let text = try encoder.encode(value)
    #expect(String(decoding: text, as: UTF8.self) == #"{"a":[1,2.5,true,"x",null],"b":{}}"#)
    #expect(try JSONDecoder().decode(FlowValue.self, from: text) == value)
    #expect(throws: EncodingError.self) { try encoder.encode(["s": Secret("hidden")]) }
    #expect(throws: EncodingError.self) { try encoder.encode(FlowValue.secret("hidden")) }
    #expect(try encoder.encode(["x" as ByteString]) == Data(#"["x"]"#.utf8))
  }

  @Test("An encoder stops at its limit, also where a few tables would become endless JSON")
  func sizeLimit() throws {
    let encoder = JSONEncoder()
    func problem(_ value: FlowValue) -> String? {
      do {
        _ = try encoder.encode(value)
        return nil
      } catch EncodingError.invalidValue(_, let context) {
        return context.debugDescription
      } catch { return "\(error)" }
    }
    let error = "can't encode content beyond the limit of 1000 (flowValueSizeLimit)"
    encoder.userInfo[.flowValueSizeLimit] = 1000
    let text = FlowValue.bytes(ByteString([UInt8](repeating: 120, count: 100)))
    #expect(problem(.opaque(ListValue([FlowValue](repeating: text, count: 8)))) == nil)
    #expect(problem(.opaque(ListValue([FlowValue](repeating: text, count: 9)))) == error)
    #expect(problem(.opaque(ListValue([FlowValue](repeating: 1, count: 62)))) == nil)
    #expect(problem(.opaque(ListValue([FlowValue](repeating: 1, count: 63)))) == error)
    let field: FlowValue = ["name": .bytes(ByteString([UInt8](repeating: 120, count: 80)))]
    #expect(problem(.opaque(ListValue([FlowValue](repeating: field, count: 8)))) == nil)
    #expect(problem(.opaque(ListValue([FlowValue](repeating: field, count: 9)))) == error)
    let list = (1...40).reduce([:] as FlowValue) { table, _ in [table, table] }
    let map = (1...40).reduce([:] as FlowValue) { table, _ in ["a": table, "b": table] }
    #expect(problem(list) == error)
    #expect(problem(map) == error)
    encoder.userInfo = [:]
    let long = FlowValue.bytes(ByteString([UInt8](repeating: 120, count: 1 << 20)))
    #expect(
      problem(.opaque(ListValue([FlowValue](repeating: long, count: 16))))
        == "can't encode content beyond the limit of 16777216 (flowValueSizeLimit)")
  }
}
