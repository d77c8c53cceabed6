/// The large blocks of memory that were handed to it, mostly the bytes of texts: each counts once, however
/// many values, names and logs share it, until the last of them releases it.
///
/// No holder of a block reports anything, as blocks are referenced weakly. So no holder can be forgotten, and
/// holding a text costs the same with and without a count.
struct HeldBlocks {
  /// Blocks of fewer bytes don't count: a weak reference takes up to half a microsecond, and 100 bytes.
  static let smallest = 513

  private struct Block {
    weak var object: AnyObject?
    /// None if another account counts it.
    let bytes: Int
  }
  private var blocks: [ObjectIdentifier: Block] = [:]
  /// The number of blocks at which those that were released are looked for next.
  private var nextSweep = 64
  /// The bytes of the blocks, with some that have been released since.
  private(set) var bytes = 0

  /// Counts an object with its present size, unless it is small; whether that is more than before.
  mutating func insert(_ object: AnyObject, bytes size: Int) -> Bool {
    guard size >= Self.smallest else { return false }
    let id = ObjectIdentifier(object)
    var isMore = true
    if let known = blocks[id] {
      // A released object may have had the same place in memory.
      if known.object != nil {
        if known.bytes == size || known.bytes == 0 { return false }
        isMore = size > known.bytes
      }
      bytes -= known.bytes
    } else if blocks.count >= nextSweep {
      sweep()
    }
    blocks[id] = Block(object: object, bytes: size)
    bytes += size
    return isMore
  }

  /// Stops counting an object, also if it is inserted again.
  mutating func handOver(_ object: AnyObject) {
    let id = ObjectIdentifier(object)
    bytes -= blocks[id]?.bytes ?? 0
    blocks[id] = Block(object: object, bytes: 0)
  }

  /// Stops counting objects that were released.
  mutating func sweep() {
    blocks = blocks.filter { $0.value.object != nil }
    bytes = blocks.reduce(0) { $0 + $1.value.bytes }
    nextSweep = max(64, blocks.count * 2)
  }
}
