extension FlowValue: Equatable {
  /// Whether both are of the same type and equal.
  ///
  /// An integer never equals a float, and NaN equals nothing. Tables, also those of scripts, are
  /// equal if their contents are; the order of fields doesn't count. A secret equals a secret with
  /// an equal value. Anything else, such as a function, equals only itself.
  public static func == (left: FlowValue, right: FlowValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.bytes(let left), .bytes(let right)): left == right
    case (.opaque(let left), .opaque(let right)): left.isEqual(to: right)
    default: false
    }
  }
}

extension OpaqueValue {
  fileprivate func isEqual(to other: any OpaqueValue) -> Bool {
    if isSame(as: other) { return true }
    if let secret = self as? SecretValue, let other = other as? SecretValue {
      return secret.plain == other.plain
    }
    guard matches(typeName: "table"), other.matches(typeName: "table"),
      let copy = plainCopy(), let otherCopy = other.plainCopy()
    else { return false }
    return copy.hasContent(of: otherCopy)
  }
}

extension PlainValue {
  private struct Pair: Hashable {
    let left: Int
    let right: Int
  }

  /// Whether both have the same content. Neither the order of entries, nor marks, nor whether a
  /// table is shared, count. No depth of nesting recurses, and tables may contain themselves.
  fileprivate func hasContent(of other: PlainValue) -> Bool {
    var compared: Set<Pair> = []
    var open: [Pair] = []
    func areEqual(_ left: Atom, _ right: Atom) -> Bool {
      switch (left, right) {
      case (.table(let left), .table(let right)):
        let pair = Pair(left: left, right: right)
        if compared.insert(pair).inserted { open.append(pair) }
        return true
      case (.number(let left), .number(let right)): return left == right
      case (.secret(let left), .secret(let right)): return areEqual(left, right)
      default: return left == right
      }
    }
    guard areEqual(root, other.root) else { return false }
    while let pair = open.popLast() {
      let (left, right) = (tables[pair.left], other.tables[pair.right])
      guard left.list.count == right.list.count, left.entries.count == right.entries.count else {
        return false
      }
      for (left, right) in zip(left.list, right.list) where !areEqual(left, right) {
        return false
      }
      for (left, right) in zip(left.sortedEntries, right.sortedEntries) {
        // A table as a key equals only itself, so none of another copy.
        if case .table = left.key { return false }
        if left.key != right.key || !areEqual(left.value, right.value) { return false }
      }
    }
    return true
  }
}

extension PlainValue.Table {
  fileprivate var sortedEntries: [PlainValue.Entry] {
    entries.sorted { $0.key.precedes($1.key) }
  }
}
