internal import FlowEngine
internal import FlowJournal

/// What `--why` prints about a run.
enum RehearsalText {
  static func text(of rehearsal: KeptRehearsal, _ run: Run) -> ByteString {
    var lines: [UInt8] = []
    var counts = Counts()
    var place = 0
    let findings = rehearsal.findings
    var item = findings.first.flatMap { Item($0.path) }
    while place < findings.count {
      let first = findings[place]
      let firstItem = item
      var last = place
      var lastNumber = firstItem?.number ?? 0
      item = nil
      // Items of a group about which the same is to be said share a line.
      while last + 1 < findings.count {
        item = Item(findings[last + 1].path)
        guard let firstItem, let next = item, next.number == lastNumber + 1,
          findings[last + 1].line == first.line, next.name == firstItem.name
        else { break }
        lastNumber = next.number
        last += 1
      }
      counts.add(first.verdict, last - place + 1)
      var path = first.path
      if last > place, let firstItem { path = "\(firstItem.path) to #\(lastNumber)" }
      lines += ("[\(path.onOneLine)] \(first.line.onOneLine)\n" as ByteString).bytes
      place = last + 1
    }
    if let unknown = rehearsal.unknown {
      lines +=
        ("what follows [\(unknown.path.onOneLine)] isn't known before it has been executed\n"
        as ByteString).bytes
    }
    return ByteString(lines)
      + "\(run.loop.secrets.redacted(run.nameBytes).onOneLine): \(counts.text)\n"
  }

  /// The path of an item of a group.
  private struct Item {
    /// The path without the number.
    let name: ByteString
    /// The path without the label.
    let path: ByteString
    let number: Int

    init?(_ path: ByteString) {
      guard let sign = path.itemSign else { return nil }
      let digits = path.bytes[(sign + 2)...].prefix { (0x30...0x39).contains($0) }
      guard let number = Int(String(decoding: digits, as: UTF8.self)) else { return nil }
      name = ByteString(Array(path.bytes[..<sign]))
      self.path = ByteString(Array(path.bytes[..<digits.endIndex]))
      self.number = number
    }
  }

  private struct Counts {
    private var kept = 0
    private var again = 0
    private var new = 0
    private var questions = 0

    mutating func add(_ verdict: KeptRehearsal.Verdict, _ count: Int) {
      switch verdict {
      case .kept: kept += count
      case .again: again += count
      case .new: new += count
      case .question: questions += count
      }
    }

    var text: ByteString {
      var parts: [ByteString] = []
      if kept > 0 { parts.append("\(kept) kept") }
      if again > 0 { parts.append("\(again) again") }
      if new > 0 { parts.append("\(new) new") }
      if questions > 0 { parts.append("\(questions) to be settled") }
      return parts.isEmpty ? "no ops" : parts.reduce("") { $0.isEmpty ? $1 : $0 + ", " + $1 }
    }
  }
}
