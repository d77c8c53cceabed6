/// Writes numbers and texts one after another, in the form that `ByteReader` reads.
@usableFromInline package struct ByteWriter {
  /// The bytes so far.
  @usableFromInline package internal(set) var bytes: [UInt8] = []

  @usableFromInline package init() {}

  /// A number of at least 0: seven bits a byte, the lowest first.
  @usableFromInline package mutating func add(_ number: UInt64) {
    var rest = number
    while rest > 0x7F {
      bytes.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  /// A count of at least 0; a negative one is written as 0.
  @usableFromInline package mutating func add(count: Int) { add(UInt64(max(count, 0))) }

  /// Any integer, in 8 bytes.
  @usableFromInline package mutating func add(fixed number: Int64) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// One byte.
  @usableFromInline package mutating func add(byte: UInt8) { bytes.append(byte) }

  /// A truth value, in one byte.
  @usableFromInline package mutating func add(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// The number of a text's bytes, and the bytes.
  @usableFromInline package mutating func add(_ text: ByteString) {
    add(count: text.count)
    bytes.append(contentsOf: text.bytes)
  }

  /// The number of bytes, and the bytes.
  @usableFromInline package mutating func add(_ part: UnsafeRawBufferPointer) {
    add(count: part.count)
    bytes.append(contentsOf: part)
  }

  /// Bytes without their number.
  @inlinable package mutating func add(raw part: some Sequence<UInt8>) {
    bytes.append(contentsOf: part)
  }
}

/// Bytes that no `ByteWriter` has written.
@usableFromInline package struct MalformedBytes: Error {
  @usableFromInline package init() {}
}

/// Reads the bytes of a `ByteWriter`; whatever the bytes are, it throws rather than traps.
@usableFromInline package struct ByteReader {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0
  private let expected: ByteString?
  /// The version of the form that is read, for what versions write differently; 0 for the present one.
  package var version = 0
  @usableFromInline var depth = 0

  /// The bytes have to stay until the last read. A `name` that is equal to the expected one shares its memory.
  @usableFromInline package init(_ bytes: UnsafeRawBufferPointer, expecting name: ByteString? = nil)
  {
    self.bytes = bytes
    expected = name
  }

  /// The number of bytes that haven't been read.
  @usableFromInline package var rest: Int { bytes.count - offset }
  /// Whether everything has been read.
  @usableFromInline package var isAtEnd: Bool { rest == 0 }

  @usableFromInline package mutating func number() throws(MalformedBytes) -> UInt64 {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while rest > 0, shift < 64 {
      let byte = bytes[offset]
      offset += 1
      // The tenth byte has one bit.
      if shift == 63, byte > 1 { break }
      number |= UInt64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return number }
      shift += 7
    }
    throw MalformedBytes()
  }

  /// A number that an `Int` can hold.
  @usableFromInline package mutating func integer() throws(MalformedBytes) -> Int {
    guard let number = Int(exactly: try number()) else { throw MalformedBytes() }
    return number
  }

  @usableFromInline package mutating func fixed() throws(MalformedBytes) -> Int64 {
    let part = try part(8)
    return Int64(littleEndian: part.loadUnaligned(as: Int64.self))
  }

  @usableFromInline package mutating func byte() throws(MalformedBytes) -> UInt8 {
    guard rest > 0 else { throw MalformedBytes() }
    defer { offset += 1 }
    return bytes[offset]
  }

  @usableFromInline package mutating func flag() throws(MalformedBytes) -> Bool {
    switch try byte() {
    case 0: return false
    case 1: return true
    default: throw MalformedBytes()
    }
  }

  /// So many bytes, which aren't copied.
  @usableFromInline package mutating func part(_ count: Int) throws(MalformedBytes)
    -> UnsafeRawBufferPointer
  {
    guard count >= 0, count <= rest else { throw MalformedBytes() }
    let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    offset += count
    return part
  }

  /// A number of bytes, and the bytes, which aren't copied.
  @usableFromInline package mutating func part() throws(MalformedBytes) -> UnsafeRawBufferPointer {
    try part(try integer())
  }

  @usableFromInline package mutating func text() throws(MalformedBytes) -> ByteString {
    ByteString(try part())
  }

  /// Reads a text like `text`, for a name that is probably the expected one.
  @usableFromInline package mutating func name() throws(MalformedBytes) -> ByteString {
    let part = try part()
    if let expected, part.elementsEqual(expected.bytes) { return expected }
    return ByteString(part)
  }

  /// Reads something that may contain others of its kind, of which so many are within each other at most.
  @inlinable package mutating func nested<Value>(
    atMost limit: Int, _ read: (inout ByteReader) throws(MalformedBytes) -> Value
  ) throws(MalformedBytes) -> Value {
    guard depth < limit else { throw MalformedBytes() }
    depth += 1
    defer { depth -= 1 }
    return try read(&self)
  }
}
