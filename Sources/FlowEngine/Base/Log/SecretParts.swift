/// The ends and the middles of texts, to be searched for in other texts.
///
/// Only lines that Lua has shortened need it, so the texts are indexed when the first such line comes. May be used
/// from any thread.
final class SecretParts: Sendable {
  /// One place of so many is in the index, and the last one with four bytes: every part of a text that is searched
  /// for has one of these among its first places.
  fileprivate static let stride = 16
  /// The bytes that the index takes for each place.
  private static let placeSize = 20

  /// The bytes that a text takes in the index.
  static func size(of text: ByteString) -> Int {
    (text.count / stride + 1) * placeSize
  }

  /// Places of the texts by the hash of the four bytes there.
  fileprivate struct Index {
    /// Texts that are longer than the shortest secret; the first `indexed` of them are in the index.
    var texts: [ByteString] = []
    var indexed = 0
    /// A text and an offset in it, and the place with the same hash that was added before; 0 for none, else its
    /// number plus one.
    var places: ContiguousArray<(text: UInt32, offset: UInt32, before: UInt32)> = []
    /// The place that was added last with each hash, likewise. A power of two of them, at least as many as places.
    var last: ContiguousArray<UInt32> = [0]
  }

  private let index = Locked(Index())

  /// How many places are in the index.
  var placeCount: Int { index.withLock { $0.places.count } }

  /// Adds a text.
  func add(_ text: ByteString) {
    guard text.count > SecretTexts.shortest else { return }
    index.withLock { $0.texts.append(text) }
  }

  /// How many bytes at the start of `bytes` are the end of a text, or all of them the middle of one; nil for none.
  ///
  /// - Parameter bytes: At least `stride + 3` bytes.
  /// - Returns: The greatest number.
  func longestMatch(with bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    index.withLock { $0.longestMatch(with: bytes) }
  }
}

extension SecretParts.Index {
  fileprivate mutating func longestMatch(with bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    while indexed < texts.count { addPlaces() }
    var found = 0
    for shift in 0..<SecretParts.stride {
      let word = UnsafeRawBufferPointer(bytes)
        .loadUnaligned(fromByteOffset: shift, as: UInt32.self)
      var next = last[slot(of: word)]
      while next != 0 {
        let place = places[Int(next - 1)]
        next = place.before
        let text = texts[Int(place.text)]
        let offset = Int(place.offset) - shift
        // The start of a text is found without the index.
        guard offset > 0 else { continue }
        let length = min(bytes.count, text.count - offset)
        if length > found, text.bytes[offset..<offset + length].elementsEqual(bytes[..<length]) {
          found = length
        }
      }
    }
    return found > 0 ? found : nil
  }

  /// Adds the places of the next text.
  private mutating func addPlaces() {
    let text = texts[indexed]
    let number = UInt32(truncatingIfNeeded: indexed)
    indexed += 1
    let first = places.count
    let end = text.count - SecretTexts.shortest
    for offset in Swift.stride(from: SecretParts.stride, to: end, by: SecretParts.stride) {
      places.append((number, UInt32(truncatingIfNeeded: offset), 0))
    }
    places.append((number, UInt32(truncatingIfNeeded: end), 0))
    if places.count <= last.count {
      link(from: first)
    } else {
      var size = last.count
      while size < places.count { size *= 2 }
      last = ContiguousArray(repeating: 0, count: size)
      link(from: 0)
    }
  }

  private mutating func link(from first: Int) {
    for number in places.indices[first...] {
      let place = places[number]
      let word = texts[Int(place.text)].withUnsafeBytes {
        UnsafeRawBufferPointer($0)
          .loadUnaligned(fromByteOffset: Int(place.offset), as: UInt32.self)
      }
      let slot = slot(of: word)
      places[number].before = last[slot]
      last[slot] = UInt32(truncatingIfNeeded: number) + 1
    }
  }

  private func slot(of word: UInt32) -> Int {
    Int((UInt64(word) &* 0x9E37_79B9_7F4A_7C15) >> 32) & (last.count - 1)
  }
}
