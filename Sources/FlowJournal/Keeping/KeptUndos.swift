internal import FlowEngine

/// The undos of ops that another one had executed, in the record of that: one write describes each, and one more
/// keeps each key of its own data.
struct KeptUndos {
  /// The undos, in the order of the writes.
  private(set) var all: [KeptUndo] = []

  /// No key begins like this.
  private static let mark: [UInt8] = "\u{0}undo ".bytes

  static func name(of number: Int) -> ByteString { ByteString(mark) + ByteString("\(number)") }

  static func name(of number: Int, key: ByteString) -> ByteString {
    name(of: number) + " " + key
  }

  /// The text that `take` reads; nil for an undo that a later process can't find.
  static func text(of undo: KeptUndo) -> ByteString? {
    undo.number.map {
      "\($0) \(undo.index) \(undo.attempt) \(undo.lineage) \(undo.place.rawValue) \(undo.name)"
    }
  }

  /// Whether a write is about an undo; adds that.
  mutating func take(_ name: ByteString, _ value: FlowValue, _ keys: KeyTable) -> Bool {
    guard name.bytes.starts(with: Self.mark) else { return false }
    let rest = name.bytes.dropFirst(Self.mark.count)
    if let space = rest.firstIndex(of: UInt8(ascii: " ")) {
      guard let last = all.indices.last else { return true }
      all[last].data.append((keys.intern(ByteString(rest[(space + 1)...])), value))
    } else if case .bytes(let text) = value {
      let fields = text.split(at: " ", maxSplits: 5)
      guard fields.count == 6 else { return true }
      let numbers = fields[..<5].map { UInt64(String(decoding: $0, as: UTF8.self)) ?? 0 }
      all.append(
        KeptUndo(
          name: ByteString(fields[5]), number: Int(clamping: numbers[0]),
          index: Int(clamping: numbers[1]), attempt: Int(clamping: numbers[2]),
          lineage: numbers[3],
          place: KeptUndo.Place(rawValue: UInt8(clamping: numbers[4])) ?? .same, data: []))
    }
    return true
  }
}
