import Glibc

/// What the system says of an `errno`.
func systemMessage(_ number: Int32) -> ByteString {
  guard let text = strerror(number) else { return "error \(number)" }
  return ByteString(Array(UnsafeRawBufferPointer(start: text, count: strlen(text))))
}

extension ByteString {
  /// The text with `\0` for each NUL byte.
  var escapingNUL: ByteString {
    let parts = bytes.split(separator: 0, omittingEmptySubsequences: false)
    return ByteString(Array(parts.joined(separator: Array("\\0".utf8))))
  }

  /// Lends the bytes as a C string; nil when there is a NUL in them, which would end it early.
  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result? {
    guard !bytes.contains(0) else { return nil }
    return bytes.withUnsafeBytes { bytes in
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
        for (index, byte) in bytes.enumerated() { buffer[index] = CChar(bitPattern: byte) }
        buffer[bytes.count] = 0
        guard let base = buffer.baseAddress else { misuse("no memory for \(bytes.count) bytes") }
        return body(base)
      }
    }
  }
}
