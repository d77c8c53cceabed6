@_spi(Scripting) import FlowEngine
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
    #expect(throws: EncodingError.self) { try encoder.encode(["s": FlowSecret("hidden")]) }
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

  /// Bytes that say so when they are decoded one by one.
  private struct Bytes: RangeReplaceableCollection, Decodable, Equatable {
    var content: [UInt8] = []
    init() {}
    init(from decoder: any Decoder) throws { Issue.record("byte by byte") }
    var startIndex: Int { 0 }
    var endIndex: Int { content.count }
    subscript(index: Int) -> UInt8 { content[index] }
    func index(after index: Int) -> Int { index + 1 }
    mutating func replaceSubrange(
      _ range: Range<Int>, with bytes: some Collection<UInt8>
    ) { content.replaceSubrange(range, with: bytes) }
  }

  @Test("Data are decoded at once, at any place and of any size")
  func data() throws {
    let value = FlowValue.bytes("a\0b")
    #expect(try value.decoded(as: Bytes.self).content == [97, 0, 98])
    #expect(try value.decoded(as: [UInt8].self) == [97, 0, 98])
    #expect(try value.decoded(as: Data.self) == Data([97, 0, 98]))
    let large = Data((0..<10_000_000).map { UInt8(truncatingIfNeeded: $0) })
    #expect(try FlowValue(encoding: ["all": [large]]).decoded() == ["all": [large]])
    #expect(throws: DecodingError.self) { try FlowValue.integer(1).decoded(as: Data.self) }
    #expect(try FlowValue.bytes("").decoded(as: Data.self).isEmpty)
  }
}
