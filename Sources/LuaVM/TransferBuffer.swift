internal import CFlowLua

/// Lua values as bytes, on their way to another state: as many as one likes, one behind the other.
///
/// Each is in the form of the engine's `PlainValueCodec`. Filled and read by one thread at a time;
/// emptied, it keeps its memory for the next batch.
// Unchecked: it holds nothing but bytes, and whoever hands it to another thread lets go of it.
public final class TransferBuffer: @unchecked Sendable {
  var raw = flowlua_buffer(bytes: nil, count: 0, capacity: 0)

  /// An empty one.
  public init() {}

  /// One with these bytes.
  public convenience init(_ bytes: [UInt8]) {
    self.init()
    let done = bytes.withUnsafeBytes {
      flowlua_buffer_append(&raw, $0.baseAddress, $0.count)
    }
    if !done { misuse("no memory for \(bytes.count) bytes") }
  }

  deinit { flowlua_buffer_free(&raw) }

  /// How many bytes it has: where the next value will begin.
  public var count: Int { raw.count }

  /// A copy of its bytes.
  public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// The bytes, lent for the time of the call.
  public func withUnsafeBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: raw.bytes, count: raw.count))
  }

  /// Takes its bytes away, at the end or all; the memory stays.
  public func removeAll(from offset: Int = 0) {
    raw.count = min(raw.count, max(offset, 0))
  }
}
