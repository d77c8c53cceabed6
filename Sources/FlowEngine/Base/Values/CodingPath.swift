/// The place of a value that is encoded or decoded: the keys and indices that lead to it.
///
/// Each place refers to the one around it, so a container costs no copy of the path.
final class CodingPath: Sendable {
  /// The place of the whole value.
  static let root = CodingPath(nil, nil)

  /// Swift types recurse, with some KiB of stack for each level.
  static let depthLimit = 200

  private let parent: CodingPath?
  private let key: (any CodingKey)?
  let depth: Int

  private init(_ parent: CodingPath?, _ key: (any CodingKey)?) {
    self.parent = parent
    self.key = key
    depth = parent.map { $0.depth + 1 } ?? 0
  }

  /// The place of a part.
  func appending(_ key: some CodingKey) -> CodingPath { CodingPath(self, key) }

  /// The place of an element.
  func appending(index: Int) -> CodingPath { appending(IndexKey(index)) }

  var keys: [any CodingKey] {
    var keys: [any CodingKey] = []
    var next: CodingPath? = self
    while let place = next {
      if let key = place.key { keys.append(key) }
      next = place.parent
    }
    return keys.reversed()
  }

  /// `.items[2].n`: the path as code would write it, with indices from 1, as scripts count, and integer
  /// keys as they are.
  static func text(of keys: [any CodingKey]) -> ByteString {
    keys.reduce(into: ByteString("")) { text, key in
      text =
        switch key {
        case let key as IndexKey: "\(text)[\(key.index + 1)]"
        case is NumberKey: "\(text)[\(key.stringValue)]"
        default: "\(text).\(key.stringValue)"
        }
    }
  }
}

/// The 0-based index of an element, as a key.
struct IndexKey: CodingKey {
  let index: Int

  init(_ index: Int) {
    self.index = index
  }

  init?(stringValue: String) { nil }

  init?(intValue: Int) {
    index = intValue
  }

  var intValue: Int? { index }
  /// As Swift's own errors show it.
  var stringValue: String { "Index \(index)" }
}

/// The integer key of a table.
struct NumberKey: CodingKey {
  let number: Int64

  init(_ number: Int64) {
    self.number = number
  }

  init?(stringValue: String) {
    guard let number = Int64(stringValue) else { return nil }
    self.number = number
  }

  init?(intValue: Int) {
    number = Int64(intValue)
  }

  var intValue: Int? { Int(exactly: number) }
  var stringValue: String { String(number) }
}

/// The key of the part of a class that its superclass encodes.
struct SuperKey: CodingKey {
  init() {}
  init?(stringValue: String) { nil }
  init?(intValue: Int) { nil }

  var intValue: Int? { nil }
  var stringValue: String { "super" }
}
