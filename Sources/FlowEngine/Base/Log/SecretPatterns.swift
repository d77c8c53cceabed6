internal import FlowSystem

/// Texts to search for in other texts: those of secrets, indexed by their first four bytes.
///
/// A text is searched byte by byte. The hash of the last four bytes is looked up in a table of
/// bits. The table is so large that hardly any bits are set other than those of secrets.
struct SecretPatterns {
  /// Only this many bytes from the start of a longer secret are kept. In a text that repeats itself
  /// as the secret does, so many bytes are compared at each position: with 4,096 a line of 1 MB
  /// took seconds.
  private static let longestKept = 256

  /// A text to search for: its start, and the whole texts with that start.
  private struct Pattern {
    let beginning: ByteString
    var wholes: [ByteString]
  }

  /// The patterns by their first four bytes, in order.
  private var patterns: [UInt32: [Pattern]] = [:]
  /// The first four bytes that may occur: a bit for each of their hashes.
  private var filter = [UInt64](repeating: 0, count: 64)
  /// How far a hash is shifted to number a bit of the filter.
  private var shift: UInt32 = 32 - 12
  /// The number of texts.
  private(set) var count = 0
  /// The bytes that they take.
  private(set) var byteCount = 0
  /// The bytes that texts took which were removed since all was indexed.
  private var removedBytes = 0
  /// The length of the longest text.
  private var longest = 0
  /// Finds the ends and the middles of the texts. Shared by the copies, as it finds the same for all.
  private let inner = SecretParts()

  /// Adds a text of at least four bytes.
  mutating func add(_ text: ByteString) {
    let beginning =
      text.count > Self.longestKept
      ? ByteString(text.bytes.prefix(Self.longestKept)) : text
    let word = beginning.bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    let place = beginning.withUnsafeBytes { bytes in
      Self.firstIndex(in: patterns[word] ?? [], above: bytes)
    }
    if place > 0, let known = patterns[word]?[place - 1], known.beginning == beginning {
      if known.wholes.contains(text) { return }
      patterns[word]?[place - 1].wholes.append(text)
    } else {
      patterns[word, default: []].insert(
        Pattern(beginning: beginning, wholes: [text]), at: place)
      mark(word)
    }
    inner.add(text)
    count += 1
    byteCount += Self.size(of: text)
    longest = max(longest, text.count)
  }

  /// Removes a text that was added.
  mutating func remove(_ text: ByteString) {
    let beginning = ByteString(text.bytes.prefix(Self.longestKept))
    let word = beginning.bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    let place = beginning.withUnsafeBytes { bytes in
      Self.firstIndex(in: patterns[word] ?? [], above: bytes) - 1
    }
    guard place >= 0, let known = patterns[word]?[place], known.beginning == beginning,
      let index = known.wholes.firstIndex(of: text)
    else { return }
    // In place: thousands of secrets may begin with the same four bytes.
    if known.wholes.count > 1 {
      patterns[word]?[place].wholes.remove(at: index)
    } else {
      patterns[word]?.remove(at: place)
      if patterns[word]?.isEmpty == true { patterns[word] = nil }
    }
    count -= 1
    byteCount -= Self.size(of: text)
    removedBytes += Self.size(of: text)
    // The filter and the parts still have it.
    guard removedBytes > byteCount + 1 << 14 else { return }
    let left = patterns.values.joined().flatMap(\.wholes)
    self = SecretPatterns()
    for text in left { add(text) }
  }

  /// The bytes that a text takes: its own, its beginning's, about 100 for both, and those of its parts in an
  /// index.
  static func size(of text: ByteString) -> Int {
    text.count + min(text.count, longestKept) + 100 + SecretParts.size(of: text)
  }

  /// Sets the bit of a word in the filter, which has at least 32 bits for each word.
  private mutating func mark(_ word: UInt32) {
    if patterns.count * 32 > filter.count * 64, shift > 4 {
      shift -= 1
      filter = Array(repeating: 0, count: filter.count * 2)
      for word in patterns.keys { setBit(word) }
    } else {
      setBit(word)
    }
  }

  private mutating func setBit(_ word: UInt32) {
    let hash = hash(word)
    filter[hash >> 6] |= 1 << UInt64(hash & 63)
  }

  private func hash(_ word: UInt32) -> Int { Int((word &* 0x9E37_79B1) >> shift) }

  /// A text with each secret replaced by `<redacted>`; overlapping places become one.
  ///
  /// - Parameters:
  ///   - text: The text to search.
  ///   - isCut: Whether its end was cut off, so that the start of a secret counts there.
  /// - Returns: The text.
  func redacted(_ text: ByteString, isCut: Bool) -> ByteString {
    guard count > 0, text.count >= SecretTexts.shortest else { return text }
    let regions = text.withUnsafeBytes { secrets(in: $0, isCut: isCut) }
    guard !regions.isEmpty else { return text }
    let bytes = text.bytes
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count + regions.count * SecretValue.mark.count)
    var end = 0
    for region in regions {
      result.append(contentsOf: bytes[end..<region.lowerBound])
      result.append(contentsOf: SecretValue.mark.bytes)
      end = region.upperBound
    }
    result.append(contentsOf: bytes[end...])
    return ByteString(result)
  }

  private func secrets(in bytes: UnsafeBufferPointer<UInt8>, isCut: Bool) -> [Range<Int>] {
    var regions: [Range<Int>] = []
    func add(_ start: Int, _ end: Int) {
      if let open = regions.last, start < open.upperBound {
        regions[regions.count - 1] =
          min(open.lowerBound, start)..<max(open.upperBound, end)
      } else {
        regions.append(start..<end)
      }
    }
    var word: UInt32 = 0
    filter.withUnsafeBufferPointer { filter in
      for last in bytes.indices {
        word = word << 8 | UInt32(bytes[last])
        if word & 0xFFFFFF == Self.dots, let length = shortened(in: bytes, at: last + 1) {
          add(last + 1, last + 1 + length)
        }
        let hash = hash(word)
        guard filter[hash >> 6] & 1 << UInt64(hash & 63) != 0, last >= 3,
          let candidates = patterns[word]
        else { continue }
        let start = last - 3
        let rest = UnsafeBufferPointer(rebasing: bytes[start...])
        if let open = regions.last, start < open.upperBound {
          // The start of the secret is enough here, which limits the time for a text that repeats
          // itself.
          guard let length = match(bytes, start, candidates, isCut: isCut)?.length else { continue }
          add(start, start + length)
        } else if let (length, pattern) = match(bytes, start, candidates, isCut: isCut) {
          let whole = pattern.wholes.map { Self.commonCount($0, rest) }.max() ?? length
          add(start, start + max(length, whole))
        }
      }
    }
    return regions
  }

  /// The longest pattern at `start`, and how many bytes of the text it matches.
  private func match(
    _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ candidates: [Pattern], isCut: Bool
  ) -> (length: Int, pattern: Pattern)? {
    let all = UnsafeBufferPointer(rebasing: bytes[start...])
    var rest = all
    var above = Self.firstIndex(in: candidates, above: rest)
    // The pattern with the longest common start is next to the place where the bytes would be
    // inserted.
    for index in [above - 1, above] where candidates.indices.contains(index) {
      let pattern = candidates[index]
      let common = Self.commonCount(pattern.beginning, all)
      if common < pattern.beginning.count,
        Self.isCut(bytes, start + common, isCut: isCut)
      {
        return (common, pattern)
      }
    }
    while above > 0 {
      let pattern = candidates[above - 1]
      let common = Self.commonCount(pattern.beginning, rest)
      if common == pattern.beginning.count { return (common, pattern) }
      // A shorter match is no longer than that common start: `rest` therefore always shrinks.
      rest = UnsafeBufferPointer(rebasing: rest[..<common])
      above = Self.firstIndex(in: candidates, above: rest)
    }
    return nil
  }

  // MARK: Texts that were cut off

  /// The ends of texts that were cut.
  private static let marks = ["…".bytes, "...".bytes]
  /// `...`, which Lua also writes for omitted text.
  private static let dots: UInt32 = 0x2E2E2E
  /// The most bytes of a chunk's name in the messages of Lua: `LUA_IDSIZE` without the final zero.
  private static let longestChunkName = 59

  /// Whether a text was cut off at `place`.
  private static func isCut(
    _ bytes: UnsafeBufferPointer<UInt8>, _ place: Int, isCut: Bool
  ) -> Bool {
    guard place < bytes.count else { return isCut }
    let rest = bytes[place...]
    return Self.marks.contains { rest.starts(with: $0) }
      // Lua cuts off the name of a chunk without a mark.
      || place >= longestChunkName && isEndOfName(bytes, place, from: place - longestChunkName)
  }

  /// Whether a place and line, as Lua writes them, end their name at `place`.
  private static func isEndOfName(
    _ bytes: UnsafeBufferPointer<UInt8>, _ place: Int, from start: Int
  ) -> Bool {
    guard place + 1 < bytes.count, bytes[place] == UInt8(ascii: ":"),
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[place + 1])
    else { return false }
    return start == 0 || [UInt8(ascii: "<"), 9, 10, 32].contains(bytes[start - 1])
  }

  /// How many bytes at `place`, which is after three dots, are the end or the middle of a secret:
  /// Lua omits the start of a file's name that is too long.
  private func shortened(in bytes: UnsafeBufferPointer<UInt8>, at place: Int) -> Int? {
    let size = Self.longestChunkName - 3
    let end = place + size
    guard longest > SecretTexts.shortest, place >= 3,
      Self.isEndOfName(bytes, end, from: place - 3)
    else { return nil }
    return inner.longestMatch(with: UnsafeBufferPointer(rebasing: bytes[place..<end]))
  }

  // MARK: Order

  /// The index of the first pattern that follows `bytes` in the order.
  private static func firstIndex(
    in patterns: [Pattern], above bytes: UnsafeBufferPointer<UInt8>
  ) -> Int {
    var low = 0
    var high = patterns.count
    while low < high {
      let middle = (low + high) / 2
      let comesAfter = patterns[middle].beginning.withUnsafeBytes { pattern in
        let common = min(pattern.count, bytes.count)
        guard let left = bytes.baseAddress, let right = pattern.baseAddress else {
          return pattern.count > bytes.count
        }
        let order = memcmp(left, right, common)
        return order == 0 ? pattern.count > bytes.count : order < 0
      }
      if comesAfter { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The length of the common start of two texts.
  private static func commonCount(
    _ text: ByteString, _ bytes: UnsafeBufferPointer<UInt8>
  ) -> Int {
    text.withUnsafeBytes { text in
      let limit = min(text.count, bytes.count)
      let left = UnsafeRawBufferPointer(text)
      let right = UnsafeRawBufferPointer(bytes)
      var place = 0
      while place + 8 <= limit {
        let difference =
          left.loadUnaligned(fromByteOffset: place, as: UInt64.self)
          ^ right.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        if difference != 0 {
          return place + UInt64(littleEndian: difference).trailingZeroBitCount / 8
        }
        place += 8
      }
      while place < limit, left[place] == right[place] { place += 1 }
      return place
    }
  }
}
