package import FlowEngine

// Executing nothing, only what a person has chosen, or all from there on.
extension Keeper {
  /// Decides about an op that isn't executed: what an earlier process has finished is taken over, also with other code
  /// or inputs.
  func rehearse(
    _ work: KeptWork, _ record: OpRecord, isComparable: Bool
  ) throws -> KeepingDecision {
    let content = OpContent(code: record.code, inputs: record.inputs)
    if isComparable, let index = try takeFinished(content, work) {
      do {
        guard let change = try fileChange(since: earlier.records[index], work) else {
          return takeOver(index, work, record, .kept, keptLine)
        }
        return takeOver(index, work, record, .again, "Again: \(change)")
      } catch let unread as UnreadFiles {
        earlier.release(index)
        throw unread
      }
    }
    var record = record
    if isComparable {
      switch try cached(work, &record) {
      case .decided(let decision)?:
        if case .finished(let known) = decision { note(.kept, known.line, record) }
        return decision
      case .execute(_, let line?, _)?: return unknown(note(.again, line, record))
      case .execute?, nil: break
      }
    }
    switch try remains(of: work, content, record) {
    case .none:
      let line: ByteString =
        !earlier.records.isEmpty ? "Executes: run \(id) hasn't executed it" : KeptRehearsal.newLine
      return unknown(note(.new, line, record))
    case .interrupted(let index):
      let known = earlier.records[index]
      if let why = question(about: known) {
        return unknown(note(.question, "Asks: \(why)", record))
      }
      return unknown(note(.again, "Again: \(Self.interruption(of: known))", record))
    case .other(let index, let difference):
      let known = earlier.records[index]
      if known.state == .finished, trustsCode, difference.isOnlyCode,
        try fileChange(since: known, work) == nil
      {
        return takeOver(index, work, record, .kept, keptLine + ": its code changed, but is trusted")
      }
      let why = question(about: known, differing: difference.text)
      let verdict = why == nil ? KeptRehearsal.Verdict.again : .question
      let line: ByteString = why.map { "Asks: \($0)" } ?? "Again: \(difference.text)"
      if known.state != .finished { return unknown(note(verdict, line, record)) }
      return takeOver(index, work, record, verdict, line)
    }
  }

  private func takeOver(
    _ index: Int, _ work: KeptWork, _ record: OpRecord, _ verdict: KeptRehearsal.Verdict,
    _ line: ByteString
  ) -> KeepingDecision {
    do {
      if verdict == .kept {
        let decision = try finished(index, line, work)
        note(verdict, line, record)
        return decision
      }
      // It stays for an op that equals it elsewhere.
      let decision = try finished(earlier.records[index], of: id, line, work) { $0(nil) }
      note(verdict, line, record)
      if rehearsal.assumption == nil { rehearsal.assumption = record.path.group }
      return decision
    } catch {
      let why: ByteString =
        "Again: what it had set can't be read: \(FlowError.from(error).message)"
      return unknown(note(.again, why, record))
    }
  }

  @discardableResult
  private func note(
    _ verdict: KeptRehearsal.Verdict, _ line: ByteString, _ record: OpRecord
  ) -> KeptRehearsal.Finding {
    var line = line
    // The other items of a group don't depend on it.
    if verdict == .kept, let assumption = rehearsal.assumption, record.path.group != assumption {
      line = line + ", if the values before it stay the same"
    }
    let finding = KeptRehearsal.Finding(path: record.path, verdict: verdict, line: line)
    // With a choice of ops, nobody wants to know of each of the others.
    if case .nothing = choice { rehearsal.findings.append(finding) } else { rehearsal.skipped += 1 }
    return finding
  }

  /// The decision about an op whose values aren't known.
  private func unknown(_ finding: KeptRehearsal.Finding) -> KeepingDecision {
    if rehearsal.unknown == nil { rehearsal.unknown = finding }
    return .fail(KeptRehearsal.refusal)
  }

  /// The decision about a chosen op that takes a list of a stream, whose writer, elsewhere, isn't executed.
  func unknown(_ work: KeptWork, _ record: OpRecord) -> KeepingDecision {
    let line: ByteString =
      "it takes items of a stream, of which nothing is kept; --from executes its writer, too"
    return unknown(note(.again, line, record))
  }

  // MARK: Streams

  package func noteLostItems(of path: ByteString) {
    guard case .nothing = choice else { return }
    let line: ByteString = "Its items aren't known before their stream is written again"
    rehearsal.findings.append(.init(path: path, verdict: .unknown, line: line))
  }

  /// The step that takes items which an op writes, and is, or executes, one of those that were chosen.
  func chosenTaker(of work: KeptWork, _ names: [ByteString]) -> ByteString? {
    work.streams?.takers.first { path in
      names.contains { name in
        path.isPath(within: name) || path.isPath(within: name.group)
          || earlier.records.contains { $0.path.isPath(within: path) && $0.isWithin(name) }
      }
    }
  }

  /// Whether an op before the one with a name may stay as it was, although the items that it had written aren't kept: those that
  /// have read them have finished, and stay, too.
  private func mayLeave(_ work: KeptWork, before name: ByteString) -> Bool {
    guard let streams = work.streams, streams.areReaders, chosenTaker(of: work, [name]) == nil
    else { return false }
    return streams.takers.allSatisfy { path in
      let known = earlier.records.filter { $0.path == path }
      return known.count == 1 && known[0].state == .finished
    }
  }

  /// Whether an op reads streams of one that stays as it was.
  func staysWithWriter(_ work: KeptWork, _ record: OpRecord) -> Bool {
    work.passesItems && left.contains(record.path)
  }

  // MARK: Ops that a person has chosen

  /// The decision about an op that is executed whatever is known of it.
  func repeated(
    _ work: KeptWork, _ record: OpRecord, _ line: ByteString = "Again: it was chosen"
  ) throws -> KeepingDecision {
    let content = OpContent(code: record.code, inputs: record.inputs)
    let index =
      try take(content, work) { _ in true }
      ?? earlier.latest(at: record.path, place(of: work)) { $0.op == record.op }
    guard let index else {
      rehearsal.executed += 1
      return execute(work, record, nil, nil)
    }
    let known = earlier.records[index]
    earlier.take(index)
    if let why = question(about: known), let decision = try settle(work, index, record, why) {
      return decision
    }
    rehearsal.executed += 1
    var record = record
    // Its end replaces what is known of it.
    record.id = known.id
    return execute(work, record, Self.lineage(after: known), line)
  }

  /// An op that was executed has failed.
  func noteFailure(_ path: ByteString, _ error: FlowError) {
    if case .only = choice { rehearsal.failures.append((path, error.message)) }
  }

  /// The decision about an op before the one from which on all are executed; nil if it hasn't finished.
  func before(
    _ work: KeptWork, _ record: OpRecord, isComparable: Bool
  ) throws -> KeepingDecision? {
    let content = OpContent(code: record.code, inputs: record.inputs)
    if isComparable, let index = try takeFinished(content, work) {
      return try finished(index, keptLine, work)
    }
    // Nothing of its streams is kept: it is executed again, unless nobody needs that.
    if work.passesItems, !staysWithWriter(work, record) {
      guard case .from(let name) = choice, mayLeave(work, before: name) else { return nil }
    }
    guard
      let index = earlier.latest(
        at: record.path, place(of: work),
        where: { $0.op == record.op && $0.state == .finished && $0.hasOutput(of: work) })
    else { return nil }
    if let streams = work.streams { left.formUnion(streams.takers) }
    return try adopted(index, record, keptLine + ", as it was", work)
  }
}

extension ByteString {
  /// A path without the number of the item at its end.
  fileprivate var group: ByteString {
    guard let sign = itemSign else { return self }
    return ByteString(bytes[..<sign])
  }
}
