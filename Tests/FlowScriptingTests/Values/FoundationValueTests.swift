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
}
