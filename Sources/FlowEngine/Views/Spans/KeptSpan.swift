/// An execution of a run that is over, as a store of kept runs has it.
package struct KeptSpan {
  /// The names of what encloses it, and its own: `publish/UploadOp #7 cat.png`.
  package var path: ByteString
  /// The name of the op.
  package var op: ByteString
  package var label: ByteString?
  /// Seconds since 1970.
  package var began: Double
  /// Seconds since 1970; nil for one that hasn't ended.
  package var ended: Double?
  package var outcome: Span.Outcome
  package var error: ByteString?

  package init(
    path: ByteString, op: ByteString, label: ByteString?, began: Double, ended: Double?,
    outcome: Span.Outcome, error: ByteString?
  ) {
    self.path = path
    self.op = op
    self.label = label
    self.began = began
    self.ended = ended
    self.outcome = outcome
    self.error = error
  }
}

/// Makes spans of what a store knows: the ops that it has records of, and the flows that their paths name.
struct KeptSpanReader {
  private(set) var spans: ContiguousArray<Span> = []
  private(set) var names: ContiguousArray<ByteString> = []
  private(set) var labels: ContiguousArray<ByteString> = []
  private(set) var failures: ContiguousArray<SpanFailure> = []
  private var numbers: [ByteString: Int32] = [:]
  private var flows: [ByteString: Int32] = [:]
  private let base: Double

  init(_ name: ByteString, began: Double, ended: Double, _ outcome: Span.Outcome, _ ops: [KeptSpan])
  {
    base = began
    add(name, .flow, parent: -1, start: began, end: ended, outcome)
    for op in ops.sorted(by: { $0.began < $1.began }) { add(op, latest: ended) }
    // A flow begins and ends with its ops.
    for index in spans.indices.reversed() where spans[index].parent >= 0 {
      let parent = Int(spans[index].parent)
      spans[parent].childCount += 1
      spans[parent].start = min(spans[parent].start, spans[index].start)
      spans[parent].end = max(spans[parent].end, spans[index].end)
      spans[parent].lastChildEnd = max(spans[parent].lastChildEnd, spans[index].end)
    }
    for index in spans.indices where spans[index].kind == .flow && index > 0 {
      spans[index].outcome = spans[0].outcome
    }
  }

  /// The starts and ends in their order.
  var order: ContiguousArray<Int32> {
    var entries: [(time: Int64, isEnd: Bool, index: Int32)] = []
    for (index, span) in spans.enumerated() {
      entries.append((span.start, false, Int32(index)))
      if span.outcome != .running { entries.append((span.end, true, Int32(index))) }
    }
    entries.sort { a, b in
      if a.time != b.time { return a.time < b.time }
      if a.isEnd != b.isEnd { return !a.isEnd }
      return a.isEnd ? a.index > b.index : a.index < b.index
    }
    return ContiguousArray(entries.map { $0.isEnd ? ~$0.index : $0.index })
  }

  private func time(_ seconds: Double) -> Int64 {
    // A clock that was set back, or a damaged store.
    Int64(exactly: (max(0, seconds - base) * 1e9).rounded()) ?? 0
  }

  private mutating func number(of name: ByteString) -> Int32 {
    if let known = numbers[name] { return known }
    names.append(name)
    numbers[name] = Int32(names.count - 1)
    return Int32(names.count - 1)
  }

  @discardableResult
  private mutating func add(
    _ name: ByteString, _ kind: Span.Kind, parent: Int32, index: Int32 = 0,
    label: ByteString? = nil, start: Double, end: Double, _ outcome: Span.Outcome
  ) -> Int32 {
    var place: Int32 = -1
    if let label {
      labels.append(label)
      place = Int32(labels.count - 1)
    }
    let start = time(start)
    spans.append(
      Span(
        id: UInt64(spans.count), parent: parent, name: number(of: name), index: index,
        label: place, kind: kind, outcome: outcome, lane: 0, log: 0, isItem: index > 0,
        position: UInt32(clamping: spans.count), queued: start, queuedLine: -1, start: start,
        end: max(start, time(end))))
    return Int32(spans.count - 1)
  }

  private mutating func add(_ op: KeptSpan, latest: Double) {
    let (around, own) = op.names
    let span = add(
      op.op, .op, parent: flow(around, at: op.began), index: Self.index(in: own, of: op.op),
      label: op.label, start: op.began, end: op.ended ?? max(latest, op.began), op.outcome)
    guard let error = op.error, !op.outcome.isSuccess else { return }
    failures.append(SpanFailure(message: error, kind: nil))
    spans[Int(span)].failure = Int32(failures.count - 1)
  }

  /// The span of what has a path.
  private mutating func flow(_ path: ByteString, at start: Double) -> Int32 {
    if path.isEmpty { return 0 }
    if let known = flows[path] { return known }
    let bytes = path.bytes
    let slash = bytes.lastIndex(of: UInt8(ascii: "/"))
    let parent = flow(slash.map { ByteString(bytes[..<$0]) } ?? "", at: start)
    let name = ByteString(slash.map { bytes[($0 + 1)...] } ?? bytes[...])
    let made = add(name, .flow, parent: parent, start: start, end: start, .succeeded)
    flows[path] = made
    return made
  }

  /// The number of an item in `UploadOp #7 cat.png`; 0 without one.
  private static func index(in name: ByteString, of op: ByteString) -> Int32 {
    let rest = name.bytes.dropFirst(op.count)
    guard rest.starts(with: " #".bytes) else { return 0 }
    let digits = rest.dropFirst(2).prefix(while: \.isDigit)
    return Int32(String(decoding: digits, as: UTF8.self)) ?? 0
  }
}

extension KeptSpan {
  /// The path of what encloses it, and its own name: the path ends with the op, its number and its label, and the label
  /// may contain slashes.
  package var names: (around: ByteString, own: ByteString) {
    let bytes = path.bytes
    let start = [UInt8(ascii: "/")] + op.bytes
    var place = bytes.count - start.count
    while place >= 0 {
      let rest = bytes[(place + start.count)...]
      if bytes[place...].starts(with: start), rest.first == nil || rest.first == 0x20 {
        return (ByteString(bytes[..<place]), ByteString(bytes[(place + 1)...]))
      }
      place -= 1
    }
    return ("", path)
  }
}
