@_spi(Scripting) package import FlowEngine

// Tables that an op hasn't made, but changed: all that hold one see the change. So such a table stays the same one when the op
// is kept, and gets the content that it had at the op's end.

/// A table that an op was given or has read.
struct SeenTable {
  let key: DataKey
  let value: any OpaqueValue
  /// The value's identity.
  let identity: UInt
  /// Its content at that time.
  let digest: Digest
  /// Whether another op, neither around this one nor within it, has used it meanwhile.
  var isShared = false
}

/// Which of the tables of an op's end are one and the same: writes with these marks say so, before the one with the value.
struct TablePlaces {
  /// By the identities of the tables, the first name of each.
  private var known: [UInt: (name: ByteString, value: any OpaqueValue, isSeen: Bool)] = [:]

  mutating func add(_ value: any OpaqueValue, _ name: ByteString, isSeen: Bool) {
    guard value is any RefillableValue, known[value.identity] == nil else { return }
    known[value.identity] = (name, value, isSeen)
  }

  /// The name under which a table is known, and the mark that says so; nil for another table.
  func place(of value: any OpaqueValue) -> (name: ByteString, mark: ByteString)? {
    guard !known.isEmpty, let place = known[value.identity], place.value.isSame(as: value) else {
      return nil
    }
    return (place.name, place.isSeen ? KeptTables.seen : KeptTables.same)
  }
}

/// The tables of a record that are the same as others.
struct KeptTables {
  /// Begins the name of a write of a table that the op has changed.
  static let changed: ByteString = "\u{0}changed "
  /// Begins the name of a write of the key under which the op had set the same table.
  static let same: ByteString = "\u{0}same "
  /// Begins the name of a write of the key under which the op had seen the same table.
  static let seen: ByteString = "\u{0}seen "

  /// The tables that get another content.
  private(set) var changes: [(key: DataKey, value: FlowValue)] = []
  private var others: [DataKey: (key: DataKey, isSeen: Bool)] = [:]
  /// The tables of earlier writes, of each key the first one.
  private var written: [DataKey: FlowValue] = [:]

  /// Whether a write is about such a table; notes it.
  mutating func take(_ name: ByteString, _ value: FlowValue, _ keys: KeyTable) -> Bool {
    guard name.bytes.first == 0 else { return false }
    if let key = name.text(after: Self.changed) {
      changes.append((keys.intern(key), value))
      return true
    }
    for mark in [Self.same, Self.seen] {
      guard let key = name.text(after: mark) else { continue }
      if case .bytes(let other) = value {
        others[keys.intern(key)] = (keys.intern(other), mark == Self.seen)
      }
      return true
    }
    return false
  }

  /// The value that a key is set to: a table as it is in the data or in an earlier write, or its own value.
  mutating func value(for key: DataKey, or own: FlowValue, in data: DataBucket) -> FlowValue {
    var value = own
    if let (other, isSeen) = others[key], let known = isSeen ? data.get(other) : written[other],
      case .opaque(let table) = known, table is any RefillableValue
    {
      value = known
    }
    if case .opaque = value, written[key] == nil { written[key] = value }
    return value
  }
}

extension KeptWrite {
  /// The key that it is about, for people; nil for what only the store needs.
  package var shownName: ByteString? {
    name.bytes.first == 0 ? name.text(after: KeptTables.changed) : name
  }
}

extension [KeptWrite] {
  /// Whether a text occurs in the values.
  func mention(_ text: ByteString) -> Bool {
    contains { write in
      guard case .bytes(let bytes) = write.content else { return false }
      return bytes.occurs(text)
    }
  }
}

extension ByteString {
  /// The rest of a text after its beginning; nil if it doesn't begin so.
  fileprivate func text(after beginning: ByteString) -> ByteString? {
    hasPrefix(beginning) ? ByteString(bytes.dropFirst(beginning.count)) : nil
  }

  fileprivate func occurs(_ text: ByteString) -> Bool {
    let (bytes, text) = (bytes, text.bytes)
    guard let first = text.first, bytes.count >= text.count else { return false }
    var place = bytes.startIndex
    while let found = bytes[place...].firstIndex(of: first), bytes.count - found >= text.count {
      if bytes[found...].starts(with: text) { return true }
      place = found + 1
    }
    return false
  }
}
