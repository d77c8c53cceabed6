internal import FlowEngine

// Ops that an earlier process knew, and that no finished one equals.
extension Keeper {
  enum Answer {
    /// It is executed, as a repetition of what a record says, and with a line that says why. It needn't execute
    /// again what the finished one of `replacing` had executed.
    case execute(OpRecord?, ByteString?, replacing: Int?)
    case decided(KeepingDecision)
  }

  /// The rest that earlier processes have left of an op that no finished one equals.
  enum Remains {
    case none
    /// It has begun, and hasn't finished, or not with all that is needed now.
    case interrupted(Int)
    /// Another op stands at its place.
    case other(Int, (text: ByteString, isOnlyCode: Bool))
  }

  func remains(
    of work: KeptWork, _ content: OpContent, _ record: OpRecord
  ) throws -> Remains {
    // Or it has finished, but not with all that is needed now.
    if let index = try take(content, work, where: { $0.state != .finished })
      ?? take(content, work, where: { !$0.hasOutput(of: work) })
    {
      return .interrupted(index)
    }
    guard
      let index = earlier.latest(
        at: record.path, place(of: work),
        where: {
          $0.op == record.op && ($0.state == .finished || $0.isOnce && $0.state == .started)
        })
    else { return .none }
    return .other(index, try difference(between: earlier.records[index], and: record, work))
  }

  /// Decides about an op that no finished one equals, and says why it is executed again.
  func again(
    _ work: KeptWork, _ content: OpContent, _ record: OpRecord
  ) throws -> Answer {
    switch try remains(of: work, content, record) {
    case .none: return .execute(nil, nil, replacing: nil)
    case .interrupted(let index):
      let known = earlier.records[index]
      if let why = question(about: known) {
        if let decision = try settle(work, index, record, why) { return .decided(decision) }
      }
      return .execute(known, "Again: \(Self.interruption(of: known))", replacing: nil)
    case .other(let index, let difference):
      let known = earlier.records[index]
      if known.state == .finished, trustsCode, difference.isOnlyCode, known.hasOutput(of: work) {
        if let change = try fileChange(since: known, work) {
          return .execute(nil, "Again: \(change)", replacing: index)
        }
        let line: ByteString = "Kept from run \(id): its code changed, but is trusted"
        return .decided(try adopted(index, record, line, work))
      }
      if let why = question(about: known, differing: difference.text) {
        if let decision = try settle(work, index, record, why) { return .decided(decision) }
      }
      // It stays for an op that equals it elsewhere.
      let isReplaced = known.state == .finished && difference.isOnlyCode
      return .execute(
        nil, "Again: \(difference.text)", replacing: isReplaced ? index : nil)
    }
  }

  /// Why an op that had begun is executed again.
  static func interruption(of known: OpRecord) -> ByteString {
    switch known.state {
    case .undone: "it was undone"
    case .finished: "the output that its group collects wasn't kept"
    case .failed:
      "it had failed\(known.error.map { ": \(FlowValue.bytes($0).logText)" } ?? "")"
    case .stopped: "it was stopped"
    case .started: "it had started, but not finished"
    }
  }

  /// The question to settle before an op with an effect that must not be repeated is executed; nil if there is
  /// none.
  func question(about known: OpRecord, differing text: ByteString? = nil) -> ByteString? {
    guard known.isOnce else { return nil }
    switch known.state {
    case .finished: return "had finished in run \(id)" + (text.map { ", and \($0)" } ?? "")
    case .started: return "had started in run \(id), and may have had its effect"
    case .failed, .stopped, .undone: return nil
    }
  }

  /// The lineage of an execution that repeats what a record says; of an undone one it is another: a server that knows
  /// the first key would take the repetition as done.
  static func lineage(after known: OpRecord) -> UInt64? { lineage(known.key, known.state) }

  static func lineage(_ key: ByteString, _ state: OpRecord.State) -> UInt64? {
    let lineage = UInt64(hexadecimal: key.bytes[...])
    return state == .undone ? lineage.map { ($0 ^ 0x756E_646F).spread } : lineage
  }

  /// Takes over a record that isn't equal, and records that, so that the next process does so by itself.
  func adopted(
    _ index: Int, _ record: OpRecord, _ line: ByteString, _ work: KeptWork, settles: Bool = false
  ) throws -> KeepingDecision {
    let decision = try finished(index, line, work)
    var known = earlier.records[index]
    known.code = record.code
    known.inputs = record.inputs
    known.outer = record.outer
    known.path = record.path
    known.place = record.place
    // Somebody has said that it is done, whatever its files are.
    if settles { for place in known.writes.indices { known.writes[place].files = [] } }
    known.reads = try known.reads.map {
      KeptInput(
        name: $0.name, digest: try digest(ofRead: $0.name, by: known, work) ?? .incomparable)
    }
    if known.state != .finished {
      known.state = .finished
      known.ended = record.began
    }
    if !isEnded { kept?.write(known) }
    return decision
  }

  /// The decision about an op with an effect that must not be repeated, as somebody has said, on the command line or by a
  /// message; nil for executing it.
  func settle(
    _ work: KeptWork, _ index: Int, _ record: OpRecord, _ why: ByteString
  ) throws -> KeepingDecision? {
    if let problem = (work.reading as? EffectQuestion)?.problem { return .refuse(problem) }
    let writes = earlier.records[index].writes
    let lost = work.requiredOutputs.first { name in
      !work.data.has(work.loop.keys.intern(name)) && !writes.contains { $0.name == name }
    }
    let answer =
      settlements[work.names().shown] ?? settlements[work.name]
      ?? answers[question(index, record)]
    switch answer {
    case .again?: return nil
    case .done? where lost == nil:
      let line: ByteString = "Kept from run \(id): settled as done"
      return try adopted(index, record, line, work, settles: true)
    case .fail?:
      return .fail(FlowError(.error, "is settled as failed"))
    case .done?, nil: return try ask(work, index, record, why, lost: lost)
    }
  }

  /// The difference between a record and the execution that stands at its place now.
  private func difference(
    between known: OpRecord, and record: OpRecord, _ work: KeptWork
  ) throws -> (text: ByteString, isOnlyCode: Bool) {
    if work.passesItems { return ("nothing of its streams is kept", false) }
    if known.reads.contains(where: \.isFolderGone) { return (Self.folderGone, false) }
    let hasChanged = known.code != record.code
    var names: [ByteString] = []
    func add(_ input: KeptInput) {
      if !names.contains(input.key) { names.append(input.key) }
    }
    for input in record.inputs where input.digest == .incomparable {
      return ("<\(input.key)> can't be compared", false)
    }
    for input in record.inputs where !known.inputs.contains(input) {
      if input.name == CachePolicy.keyName { return ("its cache key differs", false) }
      add(input)
    }
    for input in known.inputs where !record.inputs.contains(where: { $0.name == input.name }) {
      add(input)
    }
    var unread: Set<ByteString> = []
    for read in known.reads {
      do {
        let digest = try digest(ofRead: read.name, by: known, work)
        if digest != read.digest { names.append(read.name) }
      } catch let files as UnreadFiles {
        unread.formUnion(files.paths)
      }
    }
    if !unread.isEmpty { throw UnreadFiles(paths: unread) }
    if work.codeProblem != nil { return ("its code can't be compared", false) }
    if hasChanged {
      let reasons = [record.place, codeChange(from: known.code, to: record.code, work)]
      let reason = reasons.compactMap(\.self).reduce("") { $0.isEmpty ? $1 : "\($0): \($1)" }
      return ("its code changed" + (reason.isEmpty ? "" : " (\(reason))"), names.isEmpty)
    }
    if names.isEmpty { return ("it has been executed already for another op", false) }
    let shown = names.prefix(3).map { Self.shown($0, work) }.reduce("") {
      $0.isEmpty ? $1 : $0 + ", " + $1
    }
    let rest: ByteString = names.count > 3 ? " and \(names.count - 3) more" : ""
    return ("\(shown)\(rest) \(names.count == 1 ? "differs" : "differ")", false)
  }

  private static let folderGone: ByteString = "its temporary folder is gone"

  /// The name of an input in a reason: `<text>`, for a file `<source> (main.c)`.
  private static func shown(_ name: ByteString, _ work: KeptWork) -> ByteString {
    if name.bytes.first == 0 {
      return "'\(work.loop.secrets.redacted(ByteString(name.bytes.dropFirst())))'"
    }
    guard let files = work.inputFiles.first(where: { work.inputs[$0.input].name == name }),
      files.paths.count == 1
    else { return "<\(name)>" }
    return "<\(name)> (\(work.loop.secrets.redacted(files.paths[0])))"
  }

  /// Whether the keys that an op read without having declared them have the same values now, and the files that it depends
  /// on the same contents; adds those that have to be read first.
  func reads(
    of record: OpRecord, fit work: KeptWork, _ unread: inout Set<ByteString>
  ) -> Bool {
    var missing: Set<ByteString> = []
    for read in record.reads {
      do {
        if try digest(ofRead: read.name, by: record, work) != read.digest { return false }
      } catch let files as UnreadFiles {
        missing.formUnion(files.paths)
      } catch {
        return false
      }
    }
    unread.formUnion(missing)
    return missing.isEmpty
  }

  /// Why the files on which a finished op depends aren't what they were; nil when they are.
  ///
  /// - Throws: `UnreadFiles` when the content of a file has to be read first.
  func dependencyChange(since record: OpRecord, _ work: KeptWork) throws -> ByteString? {
    var unread: Set<ByteString> = []
    if record.reads.contains(where: \.isFolderGone) { return Self.folderGone }
    for read in record.reads where read.isDependency && read.folder == nil {
      do {
        if try digest(ofRead: read.name, by: record, work) != read.digest {
          return "\(Self.shown(read.name, work)) differs"
        }
      } catch let files as UnreadFiles {
        unread.formUnion(files.paths)
      }
    }
    if !unread.isEmpty { throw UnreadFiles(paths: unread) }
    return nil
  }

  /// The digest of what the op of a record would read now.
  private func digest(
    ofRead name: ByteString, by record: OpRecord, _ work: KeptWork
  ) throws -> Digest? {
    if name.bytes.first == 0 {
      let read = KeptInput(name: name, digest: .incomparable)
      if let folder = read.folder {
        return read.isFolderGone ? nil : KeptInput.folder(folder).digest
      }
      let path = ByteString(name.bytes.dropFirst())
      guard let content = try content(at: path, for: work) else {
        throw UnreadFiles(paths: [path])
      }
      return Self.digest(ofDependency: content)
    }
    return try digest(ofRead: name, in: work.data) { name in
      record.writes.contains { $0.name == name }
    }
  }

  /// The digest of what an op reads by a name: a value, or the names of all data that it hasn't set itself. nil for
  /// what can't be compared.
  func digest(
    ofRead name: ByteString, in data: DataBucket, _ isSet: (ByteString) -> Bool
  ) throws(FlowError) -> Digest? {
    switch name {
    case KeptWork.hiddenData: return nil
    case KeptWork.outsideData: return try store.digest(of: [8] as [UInt8])
    case KeptWork.dataNames:
      var names: Set<ByteString> = []
      var next: DataBucket? = data
      while let bucket = next {
        for entry in bucket.entries { names.insert(bucket.keys.name(of: entry.key)) }
        next = bucket.parent
      }
      var text: [UInt8] = [7]
      for name in names.sorted() where !isSet(name) { text += name.bytes + [0] }
      return try store.digest(of: text)
    default: return try store.digest(of: data.get(data.keys.intern(name)))
    }
  }
}

// The parts of an op's code, and which of them have changed.
extension Keeper {
  /// Has what new code consists of written, once for each code.
  func noteCode(_ digest: Digest, _ work: KeptWork) {
    guard let kept, !isEnded, let code, code.digest == digest,
      changes.written.insert(digest).inserted
    else { return }
    let details = details(of: code, work)
    if !details.isEmpty { kept.write(KnownCode(code: digest, details: details)) }
  }

  /// The differences of code, in words; nil when only the op's own function differs, or nothing is known.
  func codeChange(from known: Digest, to digest: Digest, _ work: KeptWork) -> ByteString? {
    let pair = CodeChanges.Pair(before: known, now: digest)
    if let change = changes.found[pair] { return change }
    let before = (try? store.codes.details(of: known, in: store.row(of: id).number)) ?? []
    let now = code.map { $0.digest == digest ? details(of: $0, work) : [] } ?? []
    let change = before.isEmpty || now.isEmpty ? nil : KnownCode.change(from: before, to: now)
    changes.found[pair] = .some(change)
    return change
  }

  private func details(of code: KeptCode, _ work: KeptWork) -> [KnownCode.Detail] {
    // Without them only less can be said.
    guard let details = try? code.details() else { return [] }
    return details.compactMap { detail in
      switch detail.content {
      case .shown(let text):
        KnownCode.Detail(
          name: detail.name, content: .shown(work.loop.secrets.redacted(text)))
      case .hidden(let bytes):
        (try? store.digest(of: bytes)).map { .init(name: detail.name, content: .hidden($0)) }
      }
    }
  }
}
