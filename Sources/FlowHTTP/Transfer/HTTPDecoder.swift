internal import CCurl
internal import FlowEngine

/// Decodes a body as it comes: the encodings that were applied last come first.
///
/// A stage pulls from the one before it, so that a body is decoded no further than there is room for it, however much it
/// grows.
final class HTTPDecoder {
  private struct Stage {
    let decoder: OpaquePointer
    /// The bytes that are left for it: those that have come, or what the stage before has stored in `place`.
    var input = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Where its own result goes.
    let place = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
  }

  enum Problem: Error {
    case wrong, noMemory
  }

  private var stages: [Stage] = []
  /// How many of the bytes that come were taken before the transfer paused: they come again.
  private var taken = 0

  /// Makes a decoder; nil when there is nothing to decode, or an encoding isn't known: such a body is left as it comes.
  ///
  /// - Parameter encodings: The value of a header, `gzip` or `gzip, br`.
  /// - Throws: A `Problem` without memory.
  init?(_ encodings: ByteString) throws(Problem) {
    var kinds: [Int32] = []
    for name in encodings.lowercased.bytes.split(separator: UInt8(ascii: ",")).map({ $0.trimmed() })
    {
      if name.equals("identity") { continue }
      var kind: Int32 = 0
      let isKnown = name.withUnsafeBytes {
        ccurl_decodes($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count, &kind)
      }
      guard isKnown else { return nil }
      kinds.append(kind)
    }
    // More would only be an attack.
    guard !kinds.isEmpty, kinds.count <= 5 else { return nil }
    for kind in kinds.reversed() {
      guard let decoder = ccurl_decoder_make(kind) else { throw .noMemory }
      stages.append(Stage(decoder: decoder))
    }
  }

  deinit {
    for stage in stages {
      ccurl_decoder_free(stage.decoder)
      stage.place.deallocate()
    }
  }

  /// Whether no byte is missing at the end.
  var isComplete: Bool { stages.allSatisfy { ccurl_decoder_is_complete($0.decoder) } }

  /// Decodes bytes that have come; returns whether all were taken. `mayTake` says whether there is room for more of the
  /// content: otherwise the same bytes have to come again. `take` takes a part of the content, and returns false to end.
  func decode(
    _ bytes: UnsafeRawBufferPointer, while mayTake: () -> Bool,
    _ take: (UnsafeRawBufferPointer) -> Bool
  ) throws(Problem) -> Bool {
    stages[0].input = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(taken))
    while mayTake() {
      let part = try pull(stages.count - 1)
      if part.isEmpty {
        taken = 0
        return true
      }
      if !take(part) { return false }
    }
    taken = bytes.count - stages[0].input.count
    return false
  }

  /// Decodes a part; it is empty when all bytes that have come are decoded.
  private func pull(_ index: Int) throws(Problem) -> UnsafeRawBufferPointer {
    while true {
      if index > 0, stages[index].input.isEmpty { stages[index].input = try pull(index - 1) }
      let input = stages[index].input
      let place = stages[index].place
      var part = ccurl_part()
      part.bytes = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
      part.count = input.count
      part.place = place.baseAddress?.assumingMemoryBound(to: UInt8.self)
      part.room = place.count
      switch ccurl_decode(stages[index].decoder, &part) {
      case CCURL_DECODED: break
      case CCURL_NO_MEMORY: throw .noMemory
      default: throw .wrong
      }
      stages[index].input = UnsafeRawBufferPointer(rebasing: input.suffix(part.count))
      // Without a byte for it and without a result there is nothing more.
      if part.made > 0 || input.isEmpty {
        return UnsafeRawBufferPointer(rebasing: place.prefix(part.made))
      }
    }
  }
}
