import FlowEngine
import Testing

@Suite("The codec of plain values")
struct CodecTests {
  @Test("The codec keeps every scalar")
  func keepsEveryScalar() throws {
    let allBytes = ByteString(Array(UInt8.min...UInt8.max))
    let atoms: [PlainValue.Atom] = [
      .null, .jsonNull, .boolean(true), .boolean(false), .integer(.min), .integer(.max),
      .integer(-1),
      .number(-0.0), .number(.infinity), .number(Double(bitPattern: 0x7FF8_0000_DEAD_BEEF)),
      .number(.leastNonzeroMagnitude), .bytes(""), .bytes(allBytes), .secret(.bytes("hidden")),
    ]
    for atom in atoms {
      let value = PlainValue(atom)
      #expect(try PlainValueCodec.decode(PlainValueCodec.encode(value)) == value)
    }
  }

  @Test("The codec keeps cycles and sharing")
  func keepsCyclesAndSharing() throws {
    let value = PlainValue(
      .table(0),
      tables: [
        .init(list: [.table(1), .table(1)], entries: [.init(key: .bytes("me"), value: .table(0))]),
        .init(entries: [
          .init(key: .table(0), value: .number(1)), .init(key: .integer(-4), value: .null),
        ]),
      ])
    #expect(try PlainValueCodec.decode(PlainValueCodec.encode(value)) == value)
  }

  @Test("Deep nesting doesn't recurse", .smallStack)
  func deepNestingDoesNotRecurse() throws {
    let depth = Scale.depth
    let tables = (0..<depth).map {
      PlainValue.Table(list: [$0 + 1 < depth ? .table($0 + 1) : .null])
    }
    let value = PlainValue(.table(0), tables: tables)
    #expect(try PlainValueCodec.decode(PlainValueCodec.encode(value)) == value)
  }

  @Test("Decoding any input ends in a value or an error")
  func anyInputEndsInAValueOrAnError() {
    let seed = UInt64.random(in: 0...(.max))
    print("codec seed: \(seed)")
    var random = SeededGenerator(state: seed)
    let sample = PlainValueCodec.encode(
      PlainValue(
        .table(0),
        tables: [
          .init(list: [.integer(7), .bytes("hello"), .table(1), .secret(.integer(9))]),
          .init(entries: [.init(key: .bytes("k"), value: .number(2.5))]),
        ]))
    for _ in 0..<20_000 {
      var bytes = sample
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        bytes =
          sample.prefix(3)
          + (0..<Int.random(in: 0..<40, using: &random)).map { _ in
            UInt8.random(in: 0...255, using: &random)
          }
      case 1:
        for _ in 0..<3 {
          bytes[Int.random(in: bytes.indices, using: &random)] = .random(
            in: 0...255, using: &random)
        }
      default: bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      }
      if let value = try? PlainValueCodec.decode(bytes) {
        // NaN keys and the like never get in, so what came out goes in again.
        #expect((try? PlainValueCodec.decode(PlainValueCodec.encode(value))) == value)
      }
    }
  }

  @Test("A reference to a missing table is refused")
  func aTableThatIsNotThereIsRefused() {
    for index in [-1, 0, Int.max, Int.min] {
      #expect(throws: CodecError.self) {
        try PlainValueCodec.decode(PlainValueCodec.encode(PlainValue(.table(index))))
      }
    }
  }

  @Test(
    "Malformed input is refused",
    arguments: [
      [], [0x46], [0x46, 0x50], [0x46, 0x50, 1, 0, 0], [0x46, 0x50, 4, 0],
      [0x46, 0x50, 3, 5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
      [0x46, 0x50, 3, 6, 0], [0x46, 0x50, 3, 0, 0], [0x46, 0x50, 3, 9],
      [0x46, 0x50, 3, 7, 1, 0, 0, 0, 0, 0, 0, 0],
      [0x46, 0x50, 3, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
      [0x46, 0x50, 3, 7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
      [0x46, 0x50, 3, 8], [0x46, 0x50, 3, 8, 0], [0x46, 0x50, 3, 8, 8, 1],
      [0x46, 0x50, 3, 5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    ] as [[UInt8]])
  func refusesWhatIsWrong(bytes: [UInt8]) {
    #expect(throws: CodecError.self) { try PlainValueCodec.decode(bytes) }
  }
}
