internal import Synchronization

/// Counts the bytes that Swift holds for the scripts of a loop: large texts, the logs of runs, outputs of groups and
/// programs, the steps of flows, tasks, and the names of keys. Input that nobody has taken yet counts, too. A loop has
/// one only if something limits them.
///
/// The count is approximate: other small objects and texts aren't in it.
package final class MemoryAccount {
  // Atomic, because a log may be released on any thread.
  private let count = Atomic<Int>(0)
  /// On the loop's thread only.
  private var blocks = HeldBlocks()
  /// The sum that helper threads have collected.
  private let collected = CollectedSum()
  /// The growth by small things that wasn't reported.
  private var unreported = 0
  /// Called on the loop's thread when more is held.
  private let onGrowth: () -> Void
  /// The limit; nil for none.
  private let presentLimit: () -> Int?
  /// The limit if it is exceeded.
  private let exceededLimit: () -> Int?

  /// Makes an account.
  ///
  /// - Parameters:
  ///   - limit: Returns the limit, if there is one; called on the loop's thread.
  ///   - onGrowth: Called on the loop's thread when more is held.
  ///   - exceededLimit: Called on the loop's thread when a program has written more: returns the limit if it
  ///     is exceeded.
  package init(
    limit: @escaping () -> Int? = { nil }, onGrowth: @escaping () -> Void,
    exceededLimit: @escaping () -> Int?
  ) {
    presentLimit = limit
    self.onGrowth = onGrowth
    self.exceededLimit = exceededLimit
  }

  /// The bytes of an op or machine, roughly.
  package static var opSize: Int { 1024 }

  /// The most bytes that one thing may have that is read at once; nil for any number. On the loop's thread.
  package var limit: Int? { presentLimit() }

  /// The bytes that are held.
  package var held: Int { held(within: -1) }

  /// The bytes that are held: exactly if they are more than `room`, else perhaps fewer, which is found out
  /// faster.
  package func held(within room: Int) -> Int {
    let others = max(0, count.load(ordering: .relaxed)) + collected.bytes
    if others + blocks.bytes > room { blocks.sweep() }
    return others + blocks.bytes
  }

  /// Adds bytes, or removes some; on the loop's thread.
  func change(by bytes: Int) {
    count.wrappingAdd(bytes, ordering: .relaxed)
    if bytes > 0 { onGrowth() }
  }

  /// Adds the bytes of something small, of which there can be many, or removes some; on the loop's thread.
  func change(bySmall bytes: Int) {
    count.wrappingAdd(bytes, ordering: .relaxed)
    unreported += max(0, bytes)
    // To report each would take longer than to make it.
    guard unreported >= 1 << 14 else { return }
    unreported = 0
    onGrowth()
  }

  /// Removes bytes; on any thread.
  func release(_ bytes: Int) {
    count.wrappingSubtract(bytes, ordering: .relaxed)
  }

  /// Counts a text until the last reference to its bytes is released, unless it is small; on the loop's
  /// thread. A text that is counted again counts once.
  package func add(_ text: ByteString) {
    // Checked here too: most texts are small. One that was put together may have room for more.
    guard text.count >= HeldBlocks.smallest, let storage = text.bytes._owner else { return }
    add(storage, bytes: text.bytes.capacity)
  }

  /// Counts an object with its present size until the last reference to it is released, unless it is small;
  /// on the loop's thread.
  package func add(_ object: AnyObject, bytes: Int) {
    if blocks.insert(object, bytes: bytes) { onGrowth() }
  }

  /// Stops counting a text that another loop counts from now on, whatever holds it here; on the loop's
  /// thread.
  package func handOver(_ text: ByteString) {
    guard text.count >= HeldBlocks.smallest, let storage = text.bytes._owner else { return }
    blocks.handOver(storage)
  }
}

extension MemoryAccount: MemoryMeter {
  package func add(held bytes: Int) -> Int? {
    count.wrappingAdd(bytes, ordering: .relaxed)
    return exceededLimit()
  }

  package func release(held bytes: Int) { release(bytes) }

  package func beginCollecting() -> CollectedBytes? {
    presentLimit().map { CollectedBytes(in: collected, limit: $0) }
  }
}

/// A number of bytes, as users write it: `64M`, `512K`, `1G`.
package struct ByteCount: Comparable, Sendable {
  /// The units by their letters, the largest first.
  private static let units: [(letter: UInt8, factor: Int)] = [
    (UInt8(ascii: "T"), 1 << 40), (UInt8(ascii: "G"), 1 << 30), (UInt8(ascii: "M"), 1 << 20),
    (UInt8(ascii: "K"), 1 << 10),
  ]

  package let bytes: Int

  package init(_ bytes: Int) {
    self.bytes = bytes
  }

  /// Reads a whole number with the unit K, M, G or T; nil for another text, and for a number that is too
  /// large.
  package init?(parsing text: ByteString) {
    let digits = text.bytes.dropLast()
    guard !digits.isEmpty, let last = text.bytes.last,
      digits.allSatisfy(\.isDigit),
      let number = Int(String(decoding: digits, as: UTF8.self)),
      let unit = Self.units.first(where: { $0.letter == last })
    else { return nil }
    let (product, overflows) = number.multipliedReportingOverflow(by: unit.factor)
    if overflows { return nil }
    bytes = product
  }

  /// The text that stands for exactly this number: `64M`, or `65537 bytes`.
  package var text: ByteString {
    guard bytes > 0, let unit = Self.units.first(where: { bytes % $0.factor == 0 }) else {
      return bytes == 1 ? "1 byte" : "\(bytes) bytes"
    }
    return "\(bytes / unit.factor)\(ByteString([unit.letter]))"
  }

  package static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}

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

extension UInt64 {
  /// A number of which each bit depends on all bits of this one, different for each number: SplitMix64.
  package var spread: UInt64 {
    var mixed = self &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
