internal import FlowEngine

/// The changes of code that are known.
struct CodeChanges {
  struct Pair: Hashable {
    let before: Digest
    let now: Digest
  }

  /// The code of which is written what it consists of.
  var written: Set<Digest> = []
  /// The differences, in words: all items of a group have the same.
  var found: [Pair: ByteString?] = [:]
}

extension KnownCode {
  /// The differences, in words; nil when only the op's own function differs.
  static func change(from before: [Detail], to now: [Detail]) -> ByteString? {
    // Several may have one name: then the order tells them apart.
    var known = Dictionary(grouping: before, by: \.name).mapValues { $0.map(\.content)[...] }
    var changed: [ByteString] = []
    func note(_ change: ByteString) {
      if !changed.contains(change) { changed.append(change) }
    }
    var added: [ByteString] = []
    for detail in now {
      guard let content = known[detail.name]?.popFirst() else {
        added.append("\(detail.name) is new")
        continue
      }
      if content == detail.content { continue }
      // That other variables differ as well follows from it.
      if detail.name.isEmpty { return nil }
      if case .shown(let old) = content, case .shown(let new) = detail.content {
        note("\(detail.name) was \(old), is \(new)")
      } else {
        note("\(detail.name) differs")
      }
    }
    if changed.isEmpty {
      let left = before.map(\.name).filter { known[$0]?.popFirst() != nil }
      changed = added + left.map { "\($0) is gone" }
    }
    let shown = changed.prefix(2).reduce("") { $0.isEmpty ? $1 : "\($0); \($1)" }
    if changed.isEmpty { return nil }
    return changed.count > 2 ? "\(shown) and \(changed.count - 2) more" : shown
  }
}

/// How many ops of a continued run were kept, and why the others were executed.
struct KeptCounts {
  var kept = 0
  private var new = 0
  private var again: [(why: ByteString, count: Int)] = []

  /// Counts an op that is executed, with the line that says why.
  mutating func noteExecution(_ line: ByteString?) {
    guard let line, line.hasPrefix("Again: ") else { return new += 1 }
    let why = Self.short(ByteString(line.bytes.dropFirst(7)))
    if let place = again.firstIndex(where: { $0.why == why }) {
      again[place].count += 1
    } else {
      again.append((why, 1))
    }
  }

  /// Whether an op is executed again that had finished: not only those that were left.
  var repeatsFinished: Bool {
    let left: [ByteString] = [
      "hadn't finished", "had failed", "was stopped", "was undone", "was chosen",
    ]
    return again.contains { !left.contains($0.why) }
  }

  /// A reason without its subject, and without the error of an op that had failed.
  private static func short(_ why: ByteString) -> ByteString {
    if why.hasPrefix("it had failed") { return "had failed" }
    if why == "it had started, but not finished" { return "hadn't finished" }
    for subject in ["it ", "its "] as [ByteString] where why.hasPrefix(subject) {
      return ByteString(why.bytes.dropFirst(subject.count))
    }
    return why
  }

  /// `58 kept, 3 again: 2 code changed (llm.lua:31), 1 hadn't finished`
  var text: ByteString {
    var text: ByteString = "\(kept) kept"
    if new > 0 { text = text + ", \(new) new" }
    if again.isEmpty { return text }
    let reasons = again.sorted { $0.count > $1.count }
    let shown = reasons.prefix(3).map { reason -> ByteString in
      if again.count == 1 { return reason.why }
      let isPlural = reason.count > 1 && reason.why.hasPrefix("was ")
      let why = isPlural ? "were " + ByteString(reason.why.bytes.dropFirst(4)) : reason.why
      return "\(reason.count) \(why)"
    }
    let count = again.reduce(0) { $0 + $1.count }
    text = "\(text), \(count) again: \(shown.reduce("") { $0.isEmpty ? $1 : "\($0), \($1)" })"
    let left = reasons.dropFirst(3).reduce(0) { $0 + $1.count }
    return left > 0 ? text + ", \(left) for other reasons" : text
  }
}
