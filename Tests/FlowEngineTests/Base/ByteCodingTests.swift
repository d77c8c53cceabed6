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
    writer.add(nil as ByteString?)
    writer.add(["a", "b"] as [ByteString])
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
      let none = try reader.read(ByteString?.self)
      let list = try reader.read([ByteString].self)
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
        try reader.read([UInt8].self)
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
    let bytes = error.formBytes
    let read = try #require(bytes.withUnsafeBytes { FlowError.decode($0) })
    #expect(read.kind == .http && read.message == "message" && read.op == "Op")
    #expect(
      read.path == "f/Op" && read.suggestion == "key" && read.place?.description == "x.lua:1")
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
      #expect(bytes[..<count].withUnsafeBytes { FlowError.decode($0) } == nil)
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
