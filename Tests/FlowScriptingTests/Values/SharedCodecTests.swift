import FlowEngine
@_spi(Scripting) import LuaVM
import Testing

/// The bytes that Lua values travel as are those of the engine's codec: each side reads the other's.
@Suite("Encodings shared by Lua and Swift")
struct SharedCodecTests {
  /// A value with at most one entry a table, as Lua keeps no order of them.
  func randomValue(_ random: inout SystemRandomNumberGenerator) -> PlainValue {
    let count = Int.random(in: 1...6, using: &random)
    func atom(_ random: inout SystemRandomNumberGenerator) -> PlainValue.Atom {
      switch Int.random(in: 0..<9, using: &random) {
      case 0: .boolean(.random(using: &random))
      case 1: .integer(.random(in: .min ... .max, using: &random))
      case 2: .number(Double(bitPattern: .random(in: 0...(.max), using: &random)))
      case 3: .number(-0.0)
      case 5: .jsonNull
      case 4: .bytes(ByteString((0..<Int.random(in: 0..<200, using: &random)).map { UInt8($0) }))
      default: .table(Int.random(in: 0..<count, using: &random))
      }
    }
    var tables: [PlainValue.Table] = []
    for _ in 0..<count {
      var table = PlainValue.Table(
        mark: [nil, .array, .object].randomElement(using: &random) ?? nil)
      for _ in 0..<Int.random(in: 0..<5, using: &random) { table.list.append(atom(&random)) }
      if Bool.random(using: &random) {
        table.entries = [.init(key: .bytes("key"), value: atom(&random))]
      }
      tables.append(table)
    }
    // In the order of the codec, without those that nothing names.
    let value = PlainValue(.table(0), tables: tables)
    return (try? PlainValueCodec.decode(PlainValueCodec.encode(value))) ?? value
  }

  @Test("Lua and Swift read each other's encodings")
  func eachSideReadsWhatTheOtherWrites() throws {
    let vm = try LuaVM()
    defer { vm.close() }
    var random = SystemRandomNumberGenerator()
    for _ in 0..<500 {
      let value = randomValue(&random)
      let bytes = PlainValueCodec.encode(value)
      let (arrived, end) = try vm.decode(EncodedBuffer(bytes))
      #expect(end == bytes.count)
      let back = EncodedBuffer()
      try vm.encode(arrived, into: back)
      #expect(back.bytes == bytes)
    }
  }
}
