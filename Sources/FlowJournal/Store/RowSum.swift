internal import FlowEngine

/// Collects what the digest of a row is about: all its columns, each with its length.
struct RowSum {
  private(set) var bytes: [UInt8] = []

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  mutating func add(_ number: Int64) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func add(_ number: Double) { add(Int64(bitPattern: number.bitPattern)) }

  mutating func add(_ part: UnsafeRawBufferPointer) {
    add(Int64(part.count))
    bytes.append(contentsOf: part)
  }

  mutating func add(_ text: ByteString?) {
    guard let text else { return add(-1 as Int64) }
    text.withUnsafeBytes { add(UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ digest: Digest) { digest.withBytes { add($0) } }

  /// Adds a column of bytes, or of NULL.
  mutating func add(_ column: Int32, of row: StoreStatement) {
    if row.isNull(column) { return add(-1 as Int64) }
    row.withBytes(column) { add($0) }
  }
}
