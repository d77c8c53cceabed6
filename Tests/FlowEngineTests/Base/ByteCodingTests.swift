import FlowEngine
import Testing

@Suite("Numbers and texts as bytes")
struct ByteCodingTests {
  @Test("What a writer has written, a reader reads")
  func roundTrip() throws {
    var writer = ByteWriter()
    let numbers: [UInt64] = [0, 1, 127, 128, 16_383, 16_384, 1 << 63, .max]
    for number in numbers { writer.add(number) }
    for number in [Int64.min, -1, 0, .max] { writer.add(fixed: number) }
    writer.add("text" as ByteString)
    writer.add(true)
    writer.add(optional: nil as ByteString?) { $0.add($1) }
    writer.add(list: ["a", "b"] as [ByteString]) { $0.add($1) }
    try writer.bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      for number in numbers {
        let read = try reader.number()
        #expect(read == number)
      }
      for number in [Int64.min, -1, 0, .max] {
        let read = try reader.fixed()
        #expect(read == number)
      }
      let (text, flag) = (try reader.text(), try reader.flag())
      #expect(text == "text" && flag)
      let none = try reader.optional { (r) throws(MalformedBytes) in try r.text() }
      let list = try reader.list { (r) throws(MalformedBytes) in try r.text() }
      #expect(none == nil && list == ["a", "b"])
      #expect(reader.isAtEnd)
    }
  }

  @Test(
    "Numbers that are too long or cut, and counts beyond the end, are refused",
    arguments: [
      [], [0x80], [UInt8](repeating: 0xFF, count: 10), [UInt8](repeating: 0x80, count: 11),
      [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02],
    ] as [[UInt8]])
  func wrongNumbers(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      #expect(throws: MalformedBytes.self) { try reader.number() }
    }
    let text: [UInt8] = [5, 1, 2]
    text.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      #expect(throws: MalformedBytes.self) { try reader.text() }
      reader = ByteReader(raw)
      #expect(throws: MalformedBytes.self) {
        try reader.list { (r) throws(MalformedBytes) in try r.byte() }
      }
    }
  }

  @Test("An error comes back with all its fields")
  func errors() throws {
    let process = ProcessResult(rawStatus: -9, stdout: "out", stderr: nil, stderrEnd: "end")
    let failure = RequestFailure.response(
      RequestFailure.Response(
        status: 503, headers: [("a", "b")] as [(ByteString, ByteString)], body: "busy"))
    let error = FlowError(.http, "message").with {
      $0.op = "Op"
      $0.path = "f/Op"
      $0.suggestion = "key"
      $0.place = "x.lua:1"
      $0.traceback = "trace"
      $0.code = -3
      $0.limit = .milliseconds(1500)
      $0.retryAfter = .seconds(2)
      $0.isRetriable = false
      $0.isTransient = true
      $0.process = process
      $0.request = failure
    }
    var writer = ByteWriter()
    writer.add(error)
    let bytes = writer.bytes
    let read = try bytes.withUnsafeBytes { raw in
      var reader = ByteReader(raw)
      let error = try reader.error()
      #expect(reader.isAtEnd)
      return error
    }
    #expect(read.kind == .http && read.message == "message" && read.op == "Op")
    #expect(
      read.path == "f/Op" && read.suggestion == "key" && read.place == "x.lua:1")
    #expect(read.traceback == "trace" && read.code == -3 && read.limit == .milliseconds(1500))
    #expect(read.retryAfter == .seconds(2) && read.isRetriable == false && read.isTransient == true)
    #expect(
      read.process?.signal == 9 && read.process?.stdout == "out" && read.process?.hasStderr == false
    )
    guard case .response(let response)? = read.details.request else {
      Issue.record("no response")
      return
    }
    #expect(response.status == 503 && response.body == "busy" && response.headers.count == 1)
    // Every prefix is refused.
    for count in 0..<bytes.count {
      bytes[..<count].withUnsafeBytes { raw in
        var reader = ByteReader(raw)
        #expect(throws: MalformedBytes.self) { try reader.error() }
      }
    }
  }

  @Test("A lane has one name, and a name one lane; those that are left over share the last")
  func lanes() {
    let names = LaneNames()
    #expect(names.name(of: 1) == nil)
    let first = names.lane(named: "gpu1/1")
    #expect(
      first >= 128 && names.lane(named: "gpu1/1") == first && names.name(of: first) == "gpu1/1")
    var lanes: Set<UInt8> = [first]
    for number in 2...500 { lanes.insert(names.lane(named: "gpu1/\(number)")) }
    #expect(lanes.count == 128 && lanes.contains(.max) && names.name(of: .max) == "others")
  }
}
