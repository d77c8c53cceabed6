/// The bytes of a log's texts, one text after another.
///
/// It isn't an array, because appending a short text to one takes four times the instructions.
struct TextArena: ~Copyable {
  private var base: UnsafeMutablePointer<UInt8>?
  /// The number of bytes that are used.
  private(set) var count = 0
  /// The number of bytes for which there is memory.
  private(set) var capacity = 0

  init() {}

  deinit { base?.deallocate() }

  /// Lends the bytes to `body`; the pointer must not be used after `body` returns. (A property would give a pointer
  /// that outlives the memory, if the arena is used for nothing else.)
  @inline(__always)
  borrowing func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    body(UnsafeBufferPointer(start: base, count: count))
  }

  /// Copies a text to the end, and returns the offset where it starts.
  @inline(__always)
  mutating func append(_ text: UnsafeBufferPointer<UInt8>) -> Int {
    let offset = count
    if text.count > capacity - offset { grow(by: text.count) }
    if let base, let source = text.baseAddress {
      base.advanced(by: offset).update(from: source, count: text.count)
    }
    count = offset + text.count
    return offset
  }

  /// Makes room for so many bytes more, and as much again as there is.
  @inline(never)
  private mutating func grow(by room: Int) {
    let larger = max(64, capacity * 2, count + room)
    let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    if let base {
      copy.initialize(from: base, count: count)
      base.deallocate()
    }
    base = copy
    capacity = larger
  }

  /// Removes and returns all texts.
  mutating func take() -> TextArena {
    var taken = TextArena()
    swap(&self, &taken)
    return taken
  }
}
