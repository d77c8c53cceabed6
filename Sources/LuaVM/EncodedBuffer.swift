internal import CFlowLua

/// Lua values as bytes, on their way to another state: any number of them, one after another.
///
/// Each has the form of the engine's `PlainValueCodec`. One thread at a time fills and reads it.
/// Once emptied, it keeps its memory for the next batch.
// Unchecked: it has only bytes, and code that passes it to another thread releases it.
package final class EncodedBuffer: @unchecked Sendable {
  var raw = flowlua_buffer()

  /// An empty buffer.
  package init() {}

  /// A buffer with these bytes.
  package convenience init(_ bytes: [UInt8]) {
    self.init()
    let done = bytes.withUnsafeBytes {
      flowlua_buffer_append(&raw, $0.baseAddress, $0.count)
    }
    if !done { misuse("no memory for \(bytes.count) bytes") }
  }

  deinit { flowlua_buffer_free(&raw) }

  /// The number of bytes: the offset of the next value.
  package var count: Int { raw.count }

  /// Whether a secret was encoded into it, at any depth of a value; false for bytes of another process.
  package var hasSecrets: Bool { raw.has_secrets }

  /// A copy of its bytes.
  package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// The bytes, valid during the call.
  package func withUnsafeBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: raw.bytes, count: raw.count))
  }

  /// Removes bytes, at the end or all of them; the memory stays.
  package func removeAll(from offset: Int = 0) {
    raw.count = min(raw.count, max(offset, 0))
    if raw.count == 0 { raw.has_secrets = false }
  }
}
