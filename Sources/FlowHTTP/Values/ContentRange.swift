internal import FlowEngine

/// A header `Content-Range`: which bytes of the content a response has.
struct ContentRange: Equatable {
  /// The number of the first byte.
  let start: Int64
  /// The number after the last byte's.
  let end: Int64
  /// The size of the whole content; nil if the server doesn't know it.
  let total: Int64?

  /// Reads `bytes 0-99/200` or `bytes 0-99/*`; nil for anything else.
  init?(_ text: ByteString) {
    let words = text.bytes.split(separator: UInt8(ascii: " "))
    guard words.count == 2, ByteString(words[0]).lowercased == "bytes" else { return nil }
    let parts = Self.split(words[1], at: "/")
    guard parts.count == 2 else { return nil }
    let ends = Self.split(parts[0].bytes[...], at: "-")
    guard ends.count == 2, let first = ends[0].decimal, let last = ends[1].decimal,
      first <= last, last < .max
    else { return nil }
    start = first
    end = last + 1
    if parts[1] == "*" {
      total = nil
    } else {
      guard let size = parts[1].decimal, size > last else { return nil }
      total = size
    }
  }

  private static func split(_ text: ArraySlice<UInt8>, at mark: Unicode.Scalar) -> [ByteString] {
    text.split(separator: UInt8(ascii: mark), omittingEmptySubsequences: false)
      .map { ByteString($0) }
  }
}
