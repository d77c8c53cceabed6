internal import Synchronization

/// The texts that no line, event or error may show: those of an event loop, of the loops within it
/// and of its workers. May be used from any thread. A text is one as long as a `SecretHolds` has it.
///
/// Searching a text takes one step per byte, however many secrets there are; without secrets
/// nothing is searched.
package final class SecretTexts: Sendable {
  /// Shorter texts occur by chance, and aren't replaced.
  package static let shortest = 4

  private let texts = Locked(Texts())
  private let isUsed = Atomic<Bool>(false)

  private struct Texts {
    var patterns = SecretPatterns()
    var entries: [ByteString: Entry] = [:]

    struct Entry {
      /// How many have the text.
      var holders = 0
      /// The forms of it that are hidden with it.
      var forms: [ByteString] = []
      /// The account that counts the memory of searching it; nil for none.
      var count: (account: MemoryAccount, bytes: Int)?
    }

    /// Holds a text; whether nothing has had it before.
    mutating func hold(_ text: ByteString) -> Bool {
      entries[text, default: Entry()].holders += 1
      guard entries[text]?.holders == 1 else { return false }
      if SecretTexts.isSearched(text) { patterns.add(text) }
      return true
    }

    mutating func count(_ text: ByteString, bytes: Int, in account: MemoryAccount) {
      entries[text]?.count = (account, bytes)
    }

    mutating func release(_ text: ByteString) {
      var open = [text]
      while let text = open.popLast(), let entry = entries[text] {
        if entry.holders > 1 {
          entries[text]?.holders -= 1
          continue
        }
        entries[text] = nil
        if let (account, bytes) = entry.count { account.release(bytes) }
        if SecretTexts.isSearched(text) { patterns.remove(text) }
        open += entry.forms
      }
    }
  }

  /// Makes an empty set of texts.
  package init() {}

  /// Whether there ever was a secret, even one whose text is too short to be searched for.
  @inline(__always)
  package var exist: Bool { isUsed.load(ordering: .relaxed) }

  /// The number of texts.
  package var count: Int { texts.withLock { $0.patterns.count } }
  /// The bytes of the texts.
  package var byteCount: Int { texts.withLock { $0.patterns.byteCount } }

  /// The text that a value prints as, a string or a number, secret or plain; nil for another one.
  static func text(of value: FlowValue) -> ByteString? {
    switch value.plain {
    case .bytes(let bytes): bytes
    case .integer, .number: value.plain.logText
    case .null, .boolean, .opaque: nil
    }
  }

  /// Calls `body` with each text that a value, secret or plain, hides: its own, or of a table those of the strings and
  /// numbers in it, at any depth. Keys are no secrets.
  package static func forEachText(of value: FlowValue, _ body: (ByteString) -> Void) {
    if let text = text(of: value) { return body(text) }
    guard case .opaque(let root) = value.plain else { return }
    var open = [root]
    // They are held, so that no other one gets the identity of one.
    var seen: [ObjectIdentifier: any OpaqueValue] = [:]
    while let table = open.popLast() {
      guard seen.updateValue(table, forKey: ObjectIdentifier(table)) == nil else { continue }
      for part in table.parts() {
        if let text = text(of: part) {
          if isSearched(text) { body(text) }
        } else if case .opaque(let inner) = part.plain {
          open.append(inner)
        }
      }
    }
  }

  /// Texts of less than `shortest` bytes, and those within `<redacted>`, aren't searched for: they
  /// would change lines that reveal nothing.
  private static func isSearched(_ text: ByteString) -> Bool {
    text.count >= shortest && !SecretValue.mark.contains(text)
  }

  /// Notes that there is a secret, even if it has no text.
  fileprivate func noteUse() { isUsed.store(true, ordering: .relaxed) }

  /// Holds a text. Its bytes count once, whatever has them, and what it takes to search it counts once, too.
  fileprivate func hold(_ text: ByteString, countedIn account: MemoryAccount?) {
    account?.add(text)
    let others = text.count < HeldBlocks.smallest ? 0 : text.count
    let bytes = SecretPatterns.size(of: text) - others
    let isNew = texts.withLock { texts in
      guard texts.hold(text) else { return false }
      if let account { texts.count(text, bytes: bytes, in: account) }
      return true
    }
    // Outside of the lock, because it may call out.
    if isNew { account?.change(by: bytes) }
  }

  fileprivate func release(_ text: ByteString) { texts.withLock { $0.release(text) } }

  /// Hides another form of a secret text, such as that in a URL, as long as the text is hidden.
  package func add(form: ByteString, of text: ByteString) {
    guard form != text else { return }
    texts.withLock { texts in
      guard let entry = texts.entries[text], !entry.forms.contains(form) else { return }
      texts.entries[text]?.forms.append(form)
      _ = texts.hold(form)
    }
  }

  /// `text` with `<redacted>` instead of each secret; overlapping secrets become one.
  ///
  /// The start of a secret before a mark of omission, `…` or `...`, also counts as a secret.
  package func redacted(_ text: ByteString) -> ByteString {
    guard exist else { return text }
    return redacted(text, isCut: false)
  }

  /// Whether a secret is in `text`.
  package func occur(in text: ByteString) -> Bool { exist && redacted(text) != text }

  /// The text of a value in a line: without secrets, and within `FlowValue.logLimit` characters.
  package func shownText(of value: FlowValue) -> ByteString {
    switch value {
    case .opaque(let value): shownText(limit: FlowValue.logLimit) { value.logText(limit: $0) }
    case .bytes(let text): redacted(text).truncated(to: FlowValue.logLimit)
    default: redacted(value.logText)
    }
  }

  /// The text of a value in a log, when it may not be the value's own; else nil. A string is kept
  /// whole: only views cut it.
  func redactedText(of value: FlowValue) -> ByteString? {
    if case .opaque = value { return shownText(of: value) }
    let text = value.logText
    let shown = redacted(text)
    return shown == text ? nil : shown
  }

  /// Whether a line may not show the complete text that it would show of a value.
  func hidesPart(of value: FlowValue) -> Bool {
    guard let shown = redactedText(of: value) else { return false }
    return shown != value.logText
  }

  /// The text of something within a number of characters: without secrets, or parts of one.
  ///
  /// - Parameters:
  ///   - limit: The most characters; when the text is cut, the last one is `…`.
  ///   - text: Returns the whole text, within a number of characters.
  /// - Returns: The text.
  package func shownText(
    limit: Int, _ text: (_ limit: Int) throws -> ByteString
  ) rethrows -> ByteString {
    guard exist else { return try text(limit) }
    // A few characters more than are shown: the start of a secret before a cut isn't recognized
    // when it is shorter than that.
    let surplus = Self.shortest - 1
    let raw = try text(limit + surplus)
    guard raw.bytes.suffix(3).elementsEqual(Self.ellipsis),
      raw.characterCount == limit + surplus
    else { return redacted(raw, isCut: false).truncated(to: limit) }
    let shown = redacted(ByteString(raw.bytes.dropLast(3)), isCut: true)
    let kept = shown.droppingLast(surplus)
    return (kept + ByteString(Self.ellipsis)).truncated(to: limit)
  }

  private static let ellipsis = "…".bytes

  private func redacted(_ text: ByteString, isCut: Bool) -> ByteString {
    // The copy shares its storage, so that no thread waits while a long text is searched.
    let patterns = texts.withLock { $0.patterns }
    return patterns.redacted(text, isCut: isCut)
  }
}

/// Texts of secrets that are hidden as long as it exists: those that a run has had, that a task has made, or the one of a
/// value. Confined to the thread of its loop; it may be released on any.
package final class SecretHolds {
  private let texts: SecretTexts
  private let account: MemoryAccount?
  private var held: Set<ByteString> = []

  /// Makes one without texts.
  ///
  /// - Parameters:
  ///   - texts: The texts of the loop.
  ///   - account: Counts the memory of the texts; nil unless something limits it.
  package init(_ texts: SecretTexts, countedIn account: MemoryAccount?) {
    self.texts = texts
    self.account = account
  }

  deinit {
    for text in held { texts.release(text) }
  }

  /// Adds the texts that a value hides, secret or plain.
  package func add(_ value: FlowValue) {
    texts.noteUse()
    SecretTexts.forEachText(of: value) { add($0) }
  }

  /// Adds the texts of another one.
  func add(_ other: SecretHolds) {
    for text in other.held { add(text) }
  }

  private func add(_ text: ByteString) {
    if held.insert(text).inserted { texts.hold(text, countedIn: account) }
  }
}

extension ByteString {
  /// The text without its last characters.
  fileprivate func droppingLast(_ characters: Int) -> ByteString {
    var counter = CharacterCounter()
    let starts = bytes.indices.filter { counter.begins(bytes[$0]) }
    guard starts.count > characters else { return ByteString([]) }
    return ByteString(bytes[..<starts[starts.count - characters]])
  }
}

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
