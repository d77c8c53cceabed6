internal import FlowEngine

/// Keys in the order of their addition, each once.
struct KeyList {
  private(set) var keys: [DataKey] = []
  /// The same keys, when there are many.
  private var index: Set<DataKey> = []

  /// Up to this many keys are searched one by one, which is faster than a set.
  private static let scanLimit = 12

  func contains(_ key: DataKey) -> Bool {
    index.isEmpty ? keys.contains(key) : index.contains(key)
  }

  /// Adds a key; returns whether it is a new one.
  mutating func insert(_ key: DataKey) -> Bool {
    if contains(key) { return false }
    keys.append(key)
    if !index.isEmpty {
      index.insert(key)
    } else if keys.count > Self.scanLimit {
      index = Set(keys)
    }
    return true
  }
}
