/// Finds the name that was most likely meant.
package enum NearestName {
  /// Finds the name of which `word` is a misspelling, if there is one.
  ///
  /// - Parameters:
  ///   - word: The word that was written.
  ///   - names: The possible names; the first of equally near ones counts.
  /// - Returns: The nearest name; nil when none is near.
  package static func of<Name: FlowText>(_ word: some FlowText, in names: [Name]) -> Name? {
    let bytes = word.byteString.lowercased.bytes
    // A script determines the length, and the work grows with it.
    guard bytes.count <= 40 else { return nil }
    var best: (distance: Int, name: Name)?
    for name in names {
      let other = name.byteString.lowercased.bytes
      let distance = distance(bytes, other)
      // With more changes, any short word would be near any other. A long one that begins alike may have another end:
      // `retires` for `retry`.
      let beginsAlike = bytes.count >= 7 && other.count >= 4 && bytes.prefix(3) == other.prefix(3)
      let allowed = other.count < 4 ? 1 : beginsAlike ? 3 : 2
      if distance <= allowed, distance < best?.distance ?? .max { best = (distance, name) }
    }
    return best?.name
  }

  /// How many bytes must be inserted, omitted, replaced or swapped with the next one.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        var least = min(last[j] + (left[i] == right[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
          least = min(least, beforeLast[j - 1] + 1)
        }
        row.append(least)
      }
      beforeLast = last
      last = row
    }
    return last[right.count]
  }
}
