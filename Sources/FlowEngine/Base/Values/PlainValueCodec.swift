/// The one binary form of a `PlainValue`, for threads, processes, disks and other nodes.
///
/// Version 3: the bytes `F P 3`, the root, then the body of each table in the order in which they
/// were first named. An atom is a tag and its payload: an integer or a float takes 8 bytes, little
/// endian; a string its length and its bytes; a table that was named before its index; a new table
/// 4 bytes each for the numbers of its list values and of its entries, and two bits of its tag are its
/// mark for JSON; a secret its inner atom. A body is the list values, then key and value of each entry. Other numbers are LEB128. Tables that
/// nothing names aren't written. (The C side, for Lua values, is CFlowLua's `value_encoder.c`;
/// there a table may have a metatable, which no plain value has.)
package enum PlainValueCodec {
  private static let header: [UInt8] = [UInt8(ascii: "F"), UInt8(ascii: "P"), 3]

  /// Encodes a value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - sortsEntries: Whether the entries of tables are in the order of their keys, so that equal values
  ///     have equal bytes: keys that are tables stay in the order in which they are.
  /// - Returns: The bytes.
  package static func encode(_ value: PlainValue, sortsEntries: Bool = false) -> [UInt8] {
    var writer = PlainValueWriter(tables: value.tables, output: header, sortsEntries: sortsEntries)
    writer.append(value.root)
    writer.appendBodies()
    return writer.output
  }

  /// Decodes the output of `encode`.
  ///
  /// Any other input, however it is made, results in an error, in time and memory proportional to
  /// it.
  package static func decode(_ bytes: [UInt8]) throws(CodecError) -> PlainValue {
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
}

/// The byte before a value that tells its kind, in all forms of values; also in CFlowLua's `codec.h`.
package enum ValueTag: UInt8, ByteCodable {
  case null, falsehood, truth, integer, number, bytes, known, table, secret
  case jsonNull = 15
  // A table with a mark.
  case array = 0x47
  case object = 0x87
}

private struct PlainValueWriter {
  let tables: [PlainValue.Table]
  var output: [UInt8]
  private let sortsEntries: Bool
  /// The tables that were named, in that order, and the position of each of them.
  private var named: [Int] = []
  private var places: [Int: Int] = [:]

  init(tables: [PlainValue.Table], output: [UInt8], sortsEntries: Bool) {
    self.tables = tables
    self.output = output
    self.sortsEntries = sortsEntries
  }

  private mutating func append(tag: ValueTag) { output.append(tag.rawValue) }

  private mutating func append(count: Int) {
    var rest = UInt64(truncatingIfNeeded: count)
    while rest >= 0x80 {
      output.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    output.append(UInt8(truncatingIfNeeded: rest))
  }

  private mutating func append<Bits: FixedWidthInteger>(bits: Bits) {
    Swift.withUnsafeBytes(of: bits.littleEndian) { output.append(contentsOf: $0) }
  }

  mutating func append(_ atom: PlainValue.Atom) {
    switch atom {
    case .null: append(tag: .null)
    case .jsonNull: append(tag: .jsonNull)
    case .boolean(let value): append(tag: value ? .truth : .falsehood)
    case .integer(let value):
      append(tag: .integer)
      append(bits: value)
    case .number(let value):
      append(tag: .number)
      append(bits: value.bitPattern)
    case .bytes(let value):
      append(tag: .bytes)
      append(count: value.count)
      output.append(contentsOf: value.bytes)
    case .table(let index): append(table: index)
    case .secret(let value):
      var inner = value
      while case .secret(let deeper) = inner { inner = deeper }
      append(tag: .secret)
      append(inner)
    }
  }

  private mutating func append(table index: Int) {
    guard places[index] == nil, tables.indices.contains(index) else {
      append(tag: .known)
      // In a value made by hand the index may be anything: `decode` then refuses it.
      append(count: places[index] ?? -1)
      return
    }
    places[index] = named.count
    named.append(index)
    switch tables[index].mark {
    case nil: append(tag: .table)
    case .array: append(tag: .array)
    case .object: append(tag: .object)
    }
    append(bits: UInt32(clamping: tables[index].list.count))
    append(bits: UInt32(clamping: tables[index].entries.count))
  }

  mutating func appendBodies() {
    var next = 0
    while next < named.count {
      let table = tables[named[next]]
      for atom in table.list { append(atom) }
      let entries =
        sortsEntries ? table.entries.sorted { $0.key.precedes($1.key) } : table.entries
      for entry in entries {
        append(entry.key)
        append(entry.value)
      }
      next += 1
    }
  }
}

/// The reason why bytes could not be decoded, and the place.
package struct CodecError: Error, Sendable, CustomStringConvertible {
  /// The problem with the bytes.
  package let message: String
  /// The 0-based offset of the byte at which reading stopped.
  package let offset: Int

  init(_ message: String, offset: Int) {
    self.message = message
    self.offset = offset
  }

  package var description: String { "can't decode a value: \(message) (at byte \(offset))" }
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

  /// Reads a number of elements that take at least `size` bytes each: a number that can't fit is
  /// refused at once.
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

  private mutating func bits<Bits: FixedWidthInteger>(
    as type: Bits.Type
  ) throws(CodecError) -> Bits {
    guard remaining >= MemoryLayout<Bits>.size else {
      throw CodecError("it ends too early", offset: offset)
    }
    defer { offset += MemoryLayout<Bits>.size }
    return Bits(
      littleEndian: UnsafeRawBufferPointer(buffer)
        .loadUnaligned(fromByteOffset: offset, as: Bits.self))
  }

  /// The sizes of the tables that were named; their bodies come in this order.
  private var announced: [(list: Int, entries: Int, mark: PlainValue.JSONMark?)] = []
  /// The least number of bytes of the coming bodies: they must still fit, so that memory stays
  /// proportional.
  private var promised = 0

  private mutating func atom(inSecret: Bool = false) throws(CodecError) -> PlainValue.Atom {
    let start = offset
    let tag = ValueTag(rawValue: try byte())
    switch tag {
    case .null where !inSecret: return .null
    case .jsonNull: return .jsonNull
    case .falsehood: return .boolean(false)
    case .truth: return .boolean(true)
    case .integer: return .integer(try bits(as: Int64.self))
    case .number: return .number(Double(bitPattern: try bits(as: UInt64.self)))
    case .bytes:
      let count = try count(ofSize: 1)
      defer { offset += count }
      return .bytes(ByteString(UnsafeBufferPointer(rebasing: buffer[offset..<offset + count])))
    case .known:
      let index = try number()
      guard index < UInt64(announced.count) else {
        throw CodecError("a table is named that isn't there", offset: start)
      }
      return .table(Int(index))
    case .table, .array, .object:
      let list = Int(try bits(as: UInt32.self))
      let entries = Int(try bits(as: UInt32.self))
      guard list + 2 * entries <= remaining - promised else {
        throw CodecError("a length goes beyond the end", offset: start)
      }
      promised += list + 2 * entries
      announced.append((list, entries, tag == .array ? .array : tag == .object ? .object : nil))
      return .table(announced.count - 1)
    case .secret where !inSecret: return .secret(try atom(inSecret: true))
    case .null, .secret: throw CodecError("a secret has nothing in it", offset: start)
    case nil: throw CodecError("a tag isn't known", offset: start)
    }
  }

  private mutating func key() throws(CodecError) -> PlainValue.Atom {
    let start = offset
    let key = try atom()
    switch key {
    case .null: throw CodecError("a key is nil", offset: start)
    case .number(let number) where number.isNaN:
      throw CodecError("a key is not a number", offset: start)
    default: return key
    }
  }

  mutating func value() throws(CodecError) -> PlainValue {
    let root = try atom()
    var tables: [PlainValue.Table] = []
    while tables.count < announced.count {
      let (listCount, entryCount, mark) = announced[tables.count]
      promised -= listCount + 2 * entryCount
      var table = PlainValue.Table(mark: mark)
      table.list.reserveCapacity(listCount)
      table.entries.reserveCapacity(entryCount)
      for _ in 0..<listCount { table.list.append(try atom()) }
      for _ in 0..<entryCount {
        let key = try key()
        table.entries.append(PlainValue.Entry(key: key, value: try atom()))
      }
      tables.append(table)
    }
    guard remaining == 0 else { throw CodecError("bytes are left over", offset: offset) }
    return PlainValue(root, tables: tables)
  }
}
