internal import FlowSystem

/// The short texts that were copied from a state last.
///
/// A text that is copied again shares the bytes of its first copy. So an op that sets a text that it has got, or one
/// of a few constants, allocates nothing: that is 6 % of a step with strings. Confined to the thread of the
/// state.
struct RecentTexts: ~Copyable {
  /// The length of the longest text that is kept: such texts are the same object in Lua wherever they occur.
  static let longest = 40
  private static let count = 64
  private static let stride = 48

  private let texts: UnsafeMutablePointer<ByteString>
  /// The length and bytes of each text once more, because reading an array means to retain it.
  private let copies: UnsafeMutableRawPointer

  init() {
    texts = .allocate(capacity: Self.count)
    texts.initialize(repeating: ByteString([]), count: Self.count)
    copies = .allocate(byteCount: Self.count * Self.stride, alignment: 16)
    copies.initializeMemory(as: UInt8.self, repeating: 0, count: Self.count * Self.stride)
  }

  deinit {
    texts.deinitialize(count: Self.count)
    texts.deallocate()
    copies.deallocate()
  }

  /// A copy of a text of at most `longest` bytes, or an earlier one with the same bytes.
  @inline(__always)
  func copy(of bytes: UnsafeRawBufferPointer) -> ByteString {
    guard let start = bytes.baseAddress, bytes.count <= Self.longest else {
      return ByteString(bytes)
    }
    // Lua's strings begin at multiples of 16.
    let address = UInt(bitPattern: start) >> 4
    let slot = Int(truncatingIfNeeded: (address ^ address >> 6) % UInt(Self.count))
    let copy = copies.advanced(by: slot * Self.stride)
    if copy.load(as: UInt8.self) == bytes.count,
      memcmp(copy.advanced(by: 1), start, bytes.count) == 0
    {
      return texts[slot]
    }
    return replace(slot, by: bytes)
  }

  @inline(never)
  private func replace(_ slot: Int, by bytes: UnsafeRawBufferPointer) -> ByteString {
    let copy = copies.advanced(by: slot * Self.stride)
    copy.storeBytes(of: UInt8(truncatingIfNeeded: bytes.count), as: UInt8.self)
    if let start = bytes.baseAddress {
      copy.advanced(by: 1).copyMemory(from: start, byteCount: bytes.count)
    }
    let text = ByteString(bytes)
    texts[slot] = text
    return text
  }
}
