import Glibc

/// The texts that no line may show. Confined to one thread.
///
/// Looking through a text takes one step a byte, however many secrets there are.
public final class SecretTexts {
  /// Shorter texts occur by chance, and aren't replaced.
  public static let shortest = 4
  /// A longer secret is known by this many bytes of its beginning.
  private static let longestKept = 4096

  /// A text to look for: how it begins, and the whole texts that begin so.
  private struct Pattern {
    let beginning: ByteString
    var wholes: [ByteString]
  }

  /// By their first four bytes, in order.
  private var patterns: [UInt32: [Pattern]] = [:]
  /// Which first four bytes may occur: a bit for each of their hashes.
  private var filter = [UInt64](repeating: 0, count: 64)

  /// The number of texts.
  public private(set) var count = 0

  /// No texts.
  public init() {}

  /// The texts of another one, to add to.
  init(copying other: SecretTexts) {
    patterns = other.patterns
    filter = other.filter
    count = other.count
  }

  /// Adds the text that a value prints as; secret or plain, a string or a number.
  ///
  /// Texts of less than `shortest` bytes, and those within `<redacted>`, aren't added: they would
  /// change lines that tell nothing.
  public func add(_ value: Value) {
    switch value.plain {
    case .bytes(let text): add(text)
    case .integer, .number: add(value.plain.logText)
    case .null, .boolean, .opaque: break
    }
  }

  private func add(_ text: ByteString) {
    guard text.count >= Self.shortest, !SecretValue.mark.contains(text) else { return }
    let beginning =
      text.count > Self.longestKept
      ? ByteString(Array(text.bytes.prefix(Self.longestKept))) : text
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
      let hash = Self.hash(word)
      filter[hash >> 6] |= 1 << UInt64(hash & 63)
    }
    count += 1
  }

  func add(_ other: SecretTexts) {
    for pattern in other.patterns.values.joined() {
      for text in pattern.wholes { add(text) }
    }
  }

  /// `text` with `<redacted>` in place of each secret; overlapping ones become one.
  public func redacted(_ text: ByteString) -> ByteString {
    redacted(text.bytes, isCut: false).map { ByteString($0) } ?? text
  }

  /// The same for a text of an opaque value within `limit` characters: of one that ends with `…`, the
  /// last may be the beginning of a secret.
  func redacted(_ text: ByteString, limit: Int) -> ByteString {
    let ellipsis = Array("…".utf8)
    let isCut = text.bytes.suffix(3).elementsEqual(ellipsis)
    guard isCut else { return redacted(text).truncated(to: limit) }
    guard let bytes = redacted(text.bytes.dropLast(3), isCut: true) else { return text }
    return ByteString(bytes + ellipsis).truncated(to: limit)
  }

  /// The bytes without secrets; nil when there is none in them.
  private func redacted(_ bytes: some Collection<UInt8>, isCut: Bool) -> [UInt8]? {
    guard count > 0, bytes.count >= Self.shortest else { return nil }
    let bytes = ContiguousArray(bytes)
    let regions = bytes.withUnsafeBufferPointer { secrets(in: $0, isCut: isCut) }
    guard !regions.isEmpty else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count + regions.count * SecretValue.mark.count)
    var end = 0
    for region in regions {
      result.append(contentsOf: bytes[end..<region.lowerBound])
      result.append(contentsOf: SecretValue.mark.bytes)
      end = region.upperBound
    }
    result.append(contentsOf: bytes[end...])
    return result
  }

  private func secrets(in bytes: UnsafeBufferPointer<UInt8>, isCut: Bool) -> [Range<Int>] {
    var regions: [Range<Int>] = []
    var word: UInt32 = 0
    for (last, byte) in bytes.enumerated() {
      word = word << 8 | UInt32(byte)
      let hash = Self.hash(word)
      guard last >= 3, filter[hash >> 6] & 1 << UInt64(hash & 63) != 0,
        let candidates = patterns[word]
      else { continue }
      let start = last - 3
      let rest = UnsafeBufferPointer(rebasing: bytes[start...])
      if let open = regions.last, start < open.upperBound {
        // Its beginning suffices here, which bounds the time for a text that repeats itself.
        guard let length = Self.match(rest, candidates, isCut: isCut)?.length else { continue }
        regions[regions.count - 1] =
          open.lowerBound..<max(open.upperBound, start + length)
      } else if let (length, pattern) = Self.match(rest, candidates, isCut: isCut) {
        let whole = pattern.wholes.map { Self.commonCount($0, rest) }.max() ?? length
        regions.append(start..<start + max(length, whole))
      }
    }
    return regions
  }

  /// The longest pattern that `bytes` begin with, and how many of them it takes.
  private static func match(
    _ bytes: UnsafeBufferPointer<UInt8>, _ candidates: [Pattern], isCut: Bool
  ) -> (length: Int, pattern: Pattern)? {
    var rest = bytes
    while true {
      let above = firstIndex(in: candidates, above: rest)
      if isCut, rest.count == bytes.count, above < candidates.count {
        let next = candidates[above]
        if commonCount(next.beginning, bytes) == bytes.count { return (bytes.count, next) }
      }
      guard above > 0 else { return nil }
      let pattern = candidates[above - 1]
      let common = commonCount(pattern.beginning, rest)
      if common == pattern.beginning.count { return (common, pattern) }
      // A shorter one that matches is no longer than what they have in common: that always shrinks.
      rest = UnsafeBufferPointer(rebasing: rest[..<common])
    }
  }

  /// The first pattern that comes behind `bytes` in the order.
  private static func firstIndex(
    in patterns: [Pattern], above bytes: UnsafeBufferPointer<UInt8>
  ) -> Int {
    var low = 0
    var high = patterns.count
    while low < high {
      let middle = (low + high) / 2
      let comesBehind = patterns[middle].beginning.withUnsafeBytes { pattern in
        let common = min(pattern.count, bytes.count)
        guard let left = bytes.baseAddress, let right = pattern.baseAddress else {
          return pattern.count > bytes.count
        }
        let order = memcmp(left, right, common)
        return order == 0 ? pattern.count > bytes.count : order < 0
      }
      if comesBehind { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// How many bytes two texts have in common at their begin.
  private static func commonCount(
    _ text: ByteString, _ bytes: UnsafeBufferPointer<UInt8>
  ) -> Int {
    text.withUnsafeBytes { text in
      let limit = min(text.count, bytes.count)
      if let left = text.baseAddress, let right = bytes.baseAddress,
        memcmp(left, right, limit) == 0
      {
        return limit
      }
      return (0..<limit).first { text[$0] != bytes[$0] } ?? limit
    }
  }

  private static func hash(_ word: UInt32) -> Int { Int((word &* 0x9E37_79B1) >> 20) }
}

extension ByteString {
  fileprivate func contains(_ other: ByteString) -> Bool {
    guard other.count <= count else { return false }
    return (0...count - other.count).contains { bytes[$0...].starts(with: other.bytes) }
  }
}
