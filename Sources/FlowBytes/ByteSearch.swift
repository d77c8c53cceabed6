internal import Glibc

// The standard library's `firstRange(of:)`, `contains(_:)` and `replacing(_:with:)` are a part of its regular
// expressions, which would add 1.4 MB to the program.

extension RandomAccessCollection<UInt8> where Index == Int {
  /// Where these bytes first are, one after another; nil for nowhere.
  package func place(of wanted: ByteString) -> Range<Int>? {
    let offset = withContiguousStorageIfAvailable { bytes in bytes.offset(of: wanted) }
    // Arrays and parts of them are contiguous.
    return (offset ?? Array(self).withUnsafeBufferPointer { $0.offset(of: wanted) })
      .map { startIndex + $0..<startIndex + $0 + wanted.count }
  }
}

extension UnsafeBufferPointer<UInt8> {
  fileprivate func offset(of wanted: ByteString) -> Int? {
    guard let first = wanted.bytes.first else { return 0 }
    guard let start = UnsafeRawPointer(baseAddress) else { return nil }
    var offset = 0
    while wanted.count <= count - offset,
      let found = memchr(start + offset, Int32(first), count - offset - wanted.count + 1)
    {
      offset = UnsafeRawPointer(found) - start
      if wanted.withUnsafeBytes({ equals($0, at: offset) }) { return offset }
      offset += 1
    }
    return nil
  }

  private func equals(_ part: UnsafeBufferPointer<UInt8>, at offset: Int) -> Bool {
    guard let start = baseAddress, let other = part.baseAddress else { return part.isEmpty }
    return memcmp(start + offset, other, part.count) == 0
  }
}

extension ByteString {
  /// Whether a text is a part of this one.
  package func contains(_ text: ByteString) -> Bool { bytes.place(of: text) != nil }
}
