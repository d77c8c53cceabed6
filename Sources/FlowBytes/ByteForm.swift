// Values as bytes: for other processes, for other nodes, and for records on disk. A form is one list of fields, from
// which writing and reading follow. Whatever the bytes are, reading throws rather than traps.
//
// Inlinable, so that the compiler makes code for the types of each form: without that, a job for another node and the
// reports about it took three times as many instructions to write and to read.

/// A value that has a form as bytes.
@usableFromInline package protocol ByteCodable: SendableMetatype {
  func write(to writer: inout ByteWriter)
  static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Self
}

extension ByteCodable {
  /// The bytes of this value alone.
  @inlinable package var formBytes: [UInt8] {
    var writer = ByteWriter()
    write(to: &writer)
    return writer.bytes
  }

  /// Reads what is the form of one value and nothing else; nil for any other bytes.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - name: A name that is probably one of those in it, which shares the memory of this one then.
  /// - Returns: The value.
  @inlinable package static func decode(
    _ bytes: UnsafeRawBufferPointer, expecting name: ByteString? = nil
  ) -> Self? {
    var reader = ByteReader(bytes, expecting: name)
    guard let value = try? read(from: &reader), reader.isAtEnd else { return nil }
    return value
  }
}

extension ByteWriter {
  @inlinable package mutating func add(_ value: some ByteCodable) { value.write(to: &self) }
}

extension ByteReader {
  @inlinable package mutating func read<Value: ByteCodable>(
    _ type: Value.Type = Value.self
  ) throws(MalformedBytes) -> Value {
    try Value.read(from: &self)
  }
}

/// The form of a structure: its fields in order, `ByteForm(Point.init) { ($0.x, $0.y) }`.
@usableFromInline package struct ByteForm<Value>: Sendable {
  @usableFromInline let write: @Sendable (Value, inout ByteWriter) -> Void
  @usableFromInline let read: @Sendable (inout ByteReader) throws(MalformedBytes) -> Value

  @inlinable package func write(_ value: Value, to writer: inout ByteWriter) {
    write(value, &writer)
  }

  @inlinable package func read(from reader: inout ByteReader) throws(MalformedBytes) -> Value {
    try read(&reader)
  }

  /// - Parameters:
  ///   - make: Makes a value of the fields, or throws if there is none with these.
  ///   - fields: The fields.
  @inlinable package init<each Field: ByteCodable>(
    _ make: @escaping @Sendable (repeat each Field) throws(MalformedBytes) -> Value,
    _ fields: @escaping @Sendable (Value) -> (repeat each Field)
  ) {
    write = { value, writer in
      let fields = fields(value)
      repeat (each fields).write(to: &writer)
    }
    read = { (reader) throws(MalformedBytes) in
      try make(repeat try (each Field).read(from: &reader))
    }
  }
}

/// A structure with a form.
@usableFromInline package protocol ByteRecord: ByteCodable {
  static var byteForm: ByteForm<Self> { get }
}

extension ByteRecord {
  @inlinable package func write(to writer: inout ByteWriter) {
    Self.byteForm.write(self, to: &writer)
  }

  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Self
  {
    try byteForm.read(from: &reader)
  }
}

/// The form of one case of an enumeration: a byte that tells it, and the fields.
@usableFromInline package struct ByteCase<Value>: Sendable {
  @usableFromInline let tag: UInt8
  @usableFromInline let write: @Sendable (Value, inout ByteWriter) -> Bool
  @usableFromInline let read: @Sendable (inout ByteReader) throws(MalformedBytes) -> Value

  /// - Parameters:
  ///   - tag: The byte, different in each case.
  ///   - make: Makes a value of the fields, or throws if there is none with these.
  ///   - fields: The fields of a value of this case; nil for one of another case.
  @inlinable package init<each Field: ByteCodable>(
    _ tag: UInt8, _ make: @escaping @Sendable (repeat each Field) throws(MalformedBytes) -> Value,
    _ fields: @escaping @Sendable (Value) -> (repeat each Field)?
  ) {
    self.tag = tag
    write = { value, writer in
      guard let fields = fields(value) else { return false }
      writer.add(byte: tag)
      repeat (each fields).write(to: &writer)
      return true
    }
    read = { (reader) throws(MalformedBytes) in
      try make(repeat try (each Field).read(from: &reader))
    }
  }
}

/// An enumeration with a form. A case that isn't listed can be written, and is refused by readers.
@usableFromInline package protocol ByteUnion: ByteCodable {
  static var byteCases: [ByteCase<Self>] { get }
}

extension ByteUnion {
  @inlinable package func write(to writer: inout ByteWriter) {
    for each in Self.byteCases where each.write(self, &writer) { return }
    writer.add(byte: .max)
  }

  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Self
  {
    let tag = try reader.byte()
    guard let found = byteCases.first(where: { $0.tag == tag }) else { throw MalformedBytes() }
    return try found.read(&reader)
  }
}

// MARK: - Forms of the standard types

/// An enumeration of raw values has the form of these.
extension ByteCodable where Self: RawRepresentable, RawValue: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { rawValue.write(to: &writer) }

  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Self
  {
    guard let value = Self(rawValue: try reader.read()) else { throw MalformedBytes() }
    return value
  }
}

/// One byte.
extension UInt8: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(byte: self) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> UInt8
  {
    try reader.byte()
  }
}

/// One byte, 0 or 1.
extension Bool: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(self) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Bool
  {
    try reader.flag()
  }
}

/// As many bytes as it needs.
extension UInt64: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(self) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> UInt64
  {
    try reader.number()
  }
}

/// As many bytes as it needs.
extension UInt32: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(UInt64(self)) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> UInt32
  {
    guard let number = UInt32(exactly: try reader.number()) else { throw MalformedBytes() }
    return number
  }
}

/// A number of at least 0; see `ByteWriter.add(count:)`.
extension Int: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(count: self) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Int {
    try reader.integer()
  }
}

/// 8 bytes.
extension Int64: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(fixed: self) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Int64
  {
    try reader.fixed()
  }
}

/// 8 bytes.
extension Double: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) {
    writer.add(fixed: Int64(bitPattern: bitPattern))
  }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> Double
  {
    Double(bitPattern: UInt64(bitPattern: try reader.fixed()))
  }
}

extension ByteString: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) { writer.add(self) }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> ByteString
  {
    try reader.text()
  }
}

/// Whether there is a value, and the value.
extension Optional: ByteCodable where Wrapped: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) {
    writer.add(self != nil)
    if let self { self.write(to: &writer) }
  }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> Wrapped?
  {
    try reader.flag() ? try Wrapped.read(from: &reader) : nil
  }
}

/// The number of elements, and the elements.
extension Array: ByteCodable where Element: ByteCodable {
  @inlinable package func write(to writer: inout ByteWriter) {
    writer.add(count: count)
    for element in self { element.write(to: &writer) }
  }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> [Element]
  {
    // Each element has at least one byte, so that a wrong count takes no memory.
    let count = try reader.integer()
    guard count <= reader.rest else { throw MalformedBytes() }
    var list: [Element] = []
    // An element may take much more memory than the one byte that there has to be.
    list.reserveCapacity(Swift.min(count, 1024))
    for _ in 0..<count { list.append(try Element.read(from: &reader)) }
    return list
  }
}

/// A name with a value.
@usableFromInline package struct NamedForm<Value: ByteCodable>: ByteCodable {
  @usableFromInline package let name: ByteString
  @usableFromInline package let value: Value

  @inlinable package init(_ name: ByteString, _ value: Value) {
    self.name = name
    self.value = value
  }

  @inlinable package func write(to writer: inout ByteWriter) {
    writer.add(name)
    value.write(to: &writer)
  }
  @inlinable package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> NamedForm
  {
    NamedForm(try reader.text(), try reader.read())
  }
}
