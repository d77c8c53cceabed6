internal import FlowSystem

/// Splits bytes that arrive in pieces into lines, which end with a newline. Only the unfinished line is
/// kept.
package struct LineSplitter {
  private var part: [UInt8] = []

  package init() {}

  /// Calls `body` with each line that `piece` completes, without its newline.
  package mutating func add(_ piece: UnsafeRawBufferPointer, _ body: (ByteString) -> Void) {
    var rest = piece[...]
    while let newline = Self.newline(in: rest) {
      let end = rest[..<newline]
      if part.isEmpty {
        body(ByteString(end))
      } else {
        part.append(contentsOf: end)
        body(ByteString(part))
        part = []
      }
      rest = rest[(newline + 1)...]
    }
    part.append(contentsOf: rest)
  }

  /// The length of the unfinished line.
  package var partCount: Int { part.count }

  /// Returns the unfinished line, which is empty for none, and forgets it.
  package mutating func takePart() -> ByteString {
    defer { part = [] }
    return ByteString(part)
  }

  private static func newline(in bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
    // Faster than firstIndex, which compares byte by byte.
    let rest = UnsafeRawBufferPointer(rebasing: bytes)
    guard let base = rest.baseAddress, let found = memchr(base, 10, rest.count) else { return nil }
    return bytes.startIndex + (UnsafeRawPointer(found) - base)
  }
}
