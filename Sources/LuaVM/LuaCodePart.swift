internal import CFlowLua
package import FlowBytes

/// Something that a form of code contains, and how it is reached.
package struct LuaCodePart {
  /// How the owner refers to it.
  package enum Way: Int32 {
    case root = 0
    /// The table of arguments.
    case arguments
    /// An upvalue, by its name.
    case local
    case global
    /// The field of a table, by the step to it: `.name`, `[3]`.
    case field
    /// A module that a function may require, by its name.
    case module
    /// It is what the owner itself is or holds.
    case content
  }

  package enum Value {
    case `nil`
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    /// A function that is new there, with its bytecode.
    case function([UInt8])
    /// A table that is new there.
    case table
    /// An object of the host that is new there.
    case object
    /// A module, or a field of one: its name, and the bytes to compare, with the digest of its content.
    case module(ByteString, [UInt8])
    /// Other bytes to compare.
    case bytes([UInt8])
    /// A table, function or object that was there before.
    case known
  }

  package let way: Way
  /// The number of the table, function or object that refers to it; nil for none.
  package let owner: Int?
  /// Its own number, if it is a table, function or object that is new there.
  package let number: Int?
  package let name: ByteString
  package let value: Value

  /// The parts in the list that a form was made with.
  static func list(in bytes: UnsafeRawBufferPointer, of form: UnsafeRawBufferPointer) -> [Self] {
    var parts: [Self] = []
    var at = 0
    while at + MemoryLayout<flowlua_code_part>.size <= bytes.count {
      let raw = bytes.loadUnaligned(fromByteOffset: at, as: flowlua_code_part.self)
      at += MemoryLayout<flowlua_code_part>.size
      let end = at + Int(raw.name)
      guard let way = Way(rawValue: raw.kind), end <= bytes.count, raw.start <= raw.end,
        raw.end <= UInt64(form.count)
      else { return parts }
      let value = UnsafeRawBufferPointer(rebasing: form[Int(raw.start)..<Int(raw.end)])
      parts.append(
        Self(
          way: way, owner: raw.owner < 0 ? nil : Int(raw.owner),
          number: raw.child < 0 ? nil : Int(raw.child), name: ByteString(Array(bytes[at..<end])),
          value: Value(value)))
      at = end
    }
    return parts
  }
}

extension LuaCodePart.Value {
  /// Reads the bytes of a part: a tag (codec.h), and what follows it.
  fileprivate init(_ bytes: UnsafeRawBufferPointer) {
    let all = Array(bytes)
    switch bytes.first {
    case 0 where bytes.count == 1: self = .nil
    case 1 where bytes.count == 1: self = .boolean(false)
    case 2 where bytes.count == 1: self = .boolean(true)
    case 3 where bytes.count == 9:
      self = .integer(bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self))
    case 4 where bytes.count == 9:
      self = .number(bytes.loadUnaligned(fromByteOffset: 1, as: Double.self))
    case 9 where bytes.count > 5: self = .function(Array(all[5...]))
    case 10, 11:
      // After the tag comes the length of the name, 7 bits a byte.
      let size = all.dropFirst().prefix { $0 >= 0x80 }.count + 1
      let count = all[1...].prefix(size).reversed().reduce(0) { $0 << 7 | Int($1 & 0x7F) }
      self = .module(ByteString(Array(all.dropFirst(1 + size).prefix(count))), all)
    case 6, 12: self = .known
    case 7, 13, 0x47, 0x87: self = .table
    case 16: self = .object
    default: self = .bytes(all)
    }
  }
}
