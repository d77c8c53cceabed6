/// The one binary form of a `PlainValue`, for threads, processes, disks and other machines.
///
/// Version 1: the bytes `F P 1`, the number of tables, each table (number of list values, number of
/// entries, the values, key and value of each entry), then the root. An atom is a tag and its
/// payload; numbers of things are LEB128, integers and floats 8 bytes, little endian.
public enum PlainValueCodec {
  private static let header: [UInt8] = [UInt8(ascii: "F"), UInt8(ascii: "P"), 1]

  fileprivate enum Tag: UInt8 {
    case null, falsehood, truth, integer, number, bytes, table
  }

  public static func encode(_ value: PlainValue) -> [UInt8] {
    var output = header
    append(count: value.tables.count, to: &output)
    for table in value.tables {
      append(count: table.list.count, to: &output)
      append(count: table.entries.count, to: &output)
      for atom in table.list { append(atom, to: &output) }
      for entry in table.entries {
        append(entry.key, to: &output)
        append(entry.value, to: &output)
      }
    }
    append(value.root, to: &output)
    return output
  }

  /// Reads what `encode` wrote.
  ///
  /// Any other input, however it is made, gives an error, in time and memory in proportion to it.
  public static func decode(_ bytes: [UInt8]) throws(CodecError) -> PlainValue {
    try bytes.withUnsafeBufferPointer { (buffer) throws(CodecError) in
      var reader = PlainValueReader(buffer)
      for expected in header.prefix(2) where try reader.byte() != expected {
        throw CodecError("these bytes aren't an encoded value", offset: 0)
      }
      let version = try reader.byte()
      guard version == header[2] else {
        throw CodecError("version \(version) of the encoding isn't known", offset: 2)
      }
      return try reader.value()
    }
  }

  private static func append(count: Int, to output: inout [UInt8]) {
    // A table index may be anything when the value was made by hand: `decode` refuses it then.
    var rest = UInt64(truncatingIfNeeded: count)
    while rest >= 0x80 {
      output.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    output.append(UInt8(truncatingIfNeeded: rest))
  }

  private static func append(bits: UInt64, to output: inout [UInt8]) {
    for shift in stride(from: 0, to: 64, by: 8) {
      output.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
    }
  }

  private static func append(_ atom: PlainValue.Atom, to output: inout [UInt8]) {
    switch atom {
    case .null: output.append(Tag.null.rawValue)
    case .boolean(let value):
      output.append(value ? Tag.truth.rawValue : Tag.falsehood.rawValue)
    case .integer(let value):
      output.append(Tag.integer.rawValue)
      append(bits: UInt64(bitPattern: value), to: &output)
    case .number(let value):
      output.append(Tag.number.rawValue)
      append(bits: value.bitPattern, to: &output)
    case .bytes(let value):
      output.append(Tag.bytes.rawValue)
      append(count: value.count, to: &output)
      output.append(contentsOf: value.bytes)
    case .table(let index):
      output.append(Tag.table.rawValue)
      append(count: index, to: &output)
    }
  }
}

/// Why bytes could not be decoded, and where.
public struct CodecError: Error, Sendable, CustomStringConvertible {
  public let message: String
  /// The 0-based offset of the byte at which reading stopped.
  public let offset: Int

  init(_ message: String, offset: Int) {
    self.message = message
    self.offset = offset
  }

  public var description: String { "can't decode a value: \(message) (at byte \(offset))" }
}

private struct PlainValueReader {
  private let buffer: UnsafeBufferPointer<UInt8>
  private var offset = 0

  init(_ buffer: UnsafeBufferPointer<UInt8>) {
    self.buffer = buffer
  }

  private var remaining: Int { buffer.count - offset }

  mutating func byte() throws(CodecError) -> UInt8 {
    guard remaining > 0 else { throw CodecError("it ends too early", offset: offset) }
    defer { offset += 1 }
    return buffer[offset]
  }

  /// A number of things that take at least `size` bytes each: more than fit are refused at once.
  private mutating func count(ofSize size: Int) throws(CodecError) -> Int {
    let result = try number()
    guard result <= UInt64(remaining / size) else {
      throw CodecError("a length goes beyond the end", offset: offset)
    }
    return Int(result)
  }

  private mutating func number() throws(CodecError) -> UInt64 {
    var result: UInt64 = 0
    for shift in stride(from: 0, to: 63, by: 7) {
      let next = try byte()
      result |= UInt64(next & 0x7F) << UInt64(shift)
      if next & 0x80 == 0 { return result }
    }
    throw CodecError("a length is too long", offset: offset)
  }

  private mutating func bits() throws(CodecError) -> UInt64 {
    var result: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 8) {
      result |= UInt64(try byte()) << UInt64(shift)
    }
    return result
  }

  private mutating func atom(tables: Int) throws(CodecError) -> PlainValue.Atom {
    let start = offset
    switch PlainValueCodec.Tag(rawValue: try byte()) {
    case .null: return .null
    case .falsehood: return .boolean(false)
    case .truth: return .boolean(true)
    case .integer: return .integer(Int64(bitPattern: try bits()))
    case .number: return .number(Double(bitPattern: try bits()))
    case .bytes:
      let count = try count(ofSize: 1)
      defer { offset += count }
      return .bytes(ByteString(UnsafeBufferPointer(rebasing: buffer[offset..<offset + count])))
    case .table:
      let index = try number()
      guard index < UInt64(tables) else {
        throw CodecError("a table is named that isn't there", offset: start)
      }
      return .table(Int(index))
    case nil: throw CodecError("a tag isn't known", offset: start)
    }
  }

  private mutating func key(tables: Int) throws(CodecError) -> PlainValue.Atom {
    let start = offset
    let key = try atom(tables: tables)
    switch key {
    case .null: throw CodecError("a key is nil", offset: start)
    case .number(let number) where number.isNaN:
      throw CodecError("a key is not a number", offset: start)
    default: return key
    }
  }

  mutating func value() throws(CodecError) -> PlainValue {
    // A table takes two bytes at least, an atom one, an entry two.
    let tableCount = try count(ofSize: 2)
    var tables: [PlainValue.Table] = []
    tables.reserveCapacity(tableCount)
    for _ in 0..<tableCount {
      let listCount = try count(ofSize: 1)
      let entryCount = try count(ofSize: 2)
      var table = PlainValue.Table()
      for _ in 0..<listCount { table.list.append(try atom(tables: tableCount)) }
      for _ in 0..<entryCount {
        let key = try key(tables: tableCount)
        table.entries.append(PlainValue.Entry(key: key, value: try atom(tables: tableCount)))
      }
      tables.append(table)
    }
    let root = try atom(tables: tableCount)
    guard remaining == 0 else { throw CodecError("bytes are left over", offset: offset) }
    return PlainValue(root, tables: tables)
  }
}
