internal import FlowLoop
package import FlowEngine

/// Keeps the ops of all runs of a script in a store, and takes over what earlier processes have finished there.
///
/// Ops are found by content: the op with its code, and all that it was given or has read. Where it stands doesn't
/// count, so that a script may be edited between two processes. Confined to the loop's thread.
package final class Keeper: RunKeeper {
  /// What is done about an op with `effect = "once"` that may have been executed already.
  package enum Settlement: String, CaseIterable, Sendable {
    /// It has had its effect; it isn't executed again.
    case done
    /// It is executed again.
    case again
    /// It fails.
    case fail
  }

  /// Whether the script has ended.
  private var isEnded = false
  /// The name under which the result of a step is kept; hardly that of a key.
  static let resultName: ByteString = "\u{0}result"
  /// The run in the store.
  package let kept: KeptRun
  private let store: JournalStore
  private let values: any KeptValues
  private var earlier: EarlierOps
  /// Whether an earlier process has executed anything.
  private let isResumed: Bool
  /// Whether code that has changed counts as the same.
  private let trustsCode: Bool
  /// Whether results of other runs are taken over.
  private let usesCache: Bool
  /// By the name of an op, or of an item: `PayOp`, `PayOp #3`.
  private let settlements: [ByteString: Settlement]
  /// Called with a sentence for the person who runs the script.
  private let warn: (ByteString) -> Void
  /// The names of ops that a warning was about.
  private var warned: Set<ByteString> = []
  /// The code of the op whose items a group executes; it is compared once for all of them.
  private var code: (origin: KeptWork.CodeOrigin?, digest: Digest, place: ByteString?)?
  /// Executions that have begun in this turn of the loop.
  private var begun: [OpKeeping] = []

  package init(
    _ kept: KeptRun, in store: JournalStore, values: any KeptValues, trustsCode: Bool = false,
    usesCache: Bool = true, settlements: [ByteString: Settlement] = [:],
    warn: @escaping (ByteString) -> Void
  ) {
    self.kept = kept
    self.store = store
    self.values = values
    self.trustsCode = trustsCode
    self.usesCache = usesCache
    self.settlements = settlements
    self.warn = warn
    earlier = EarlierOps(kept.records)
    isResumed = !kept.records.isEmpty
    kept.records = []
  }

  package func decide(_ work: KeptWork) -> KeepingDecision {
    // Nothing is executed unrecorded.
    if let failure = kept.failure { return .refuse(failure) }
    do {
      let (code, place) = try code(of: work)
      let inputs = try work.inputs.map {
        KeptInput(name: $0.name, digest: try store.digest(of: $0.value) ?? .incomparable)
      }
      let isComparable = !inputs.contains { $0.digest == .incomparable }
      let record = OpRecord(
        path: work.loop.secrets.redacted(work.path), op: work.name,
        label: work.label.map { work.loop.secrets.redacted($0) }, code: code, inputs: inputs,
        state: .started, began: Self.time(on: work.loop), key: "", isOnce: work.isOnce,
        place: place)
      return try decide(work, record, isComparable: isComparable)
    } catch {
      return .refuse(.from(error))
    }
  }

  private func decide(
    _ work: KeptWork, _ record: OpRecord, isComparable: Bool
  ) throws -> KeepingDecision {
    var record = record
    let content = OpContent(code: record.code, inputs: record.inputs)
    var line: ByteString?
    var lineage = work.lineage
    if isComparable,
      let index = earlier.take(
        content, where: { $0.state == .finished && reads(of: $0, fit: work) })
    {
      do {
        return try finished(index, "Kept from run \(kept.id)", work)
      } catch {
        let known = earlier.records[index]
        let why: ByteString = "had finished in run \(kept.id), but what it had set can't be read"
        if known.isOnce, let decision = try settle(work, index, record, why) { return decision }
        lineage = UInt64(known.key.description, radix: 16) ?? lineage
        line = "Again: what it had set can't be read: \(FlowError.from(error).message)"
      }
    }
    if isComparable, line == nil, let decision = try cached(work, &record) { return decision }
    if isResumed, line == nil {
      switch try again(work, content, record) {
      case .execute(let earlierLineage, let why):
        lineage = earlierLineage ?? lineage
        line = why
      case .decided(let decision): return decision
      }
    }
    record.key = ByteString(String(lineage, radix: 16))
    let keeping = OpKeeping(self, record, lineage: lineage, work)
    noteStart(keeping, on: work.loop)
    return .execute(keeping, line: line)
  }

  /// The decision about an op whose result may come from another run; nil if there is none. Gives the record the key
  /// by which others find it.
  private func cached(
    _ work: KeptWork, _ record: inout OpRecord
  ) throws -> KeepingDecision? {
    guard let cache = work.cache else { return nil }
    let content = OpContent(code: record.code, inputs: record.inputs)
    let version = try store.digest(cache.version)
    let key = content.code.followed(by: content.inputs).followed(by: version)
    record.cacheKey = key
    guard usesCache, let (run, known) = try store.cached(key) else { return nil }
    if let expires = cache.expires, record.began - known.ended > expires { return nil }
    do {
      // An op with an undo has no cache.
      return try finished(known, "Kept from run \(run)", work) { _ in }
    } catch {
      // A large value may have gone with its run.
      return nil
    }
  }

  /// The decision about what a record says to have finished.
  private func finished(
    _ index: Int, _ line: ByteString, _ work: KeptWork
  ) throws -> KeepingDecision {
    let known = earlier.records[index]
    let lineage = UInt64(known.key.description, radix: 16)
    let decision = try finished(known, line, work, lineage: lineage) { [self] in
      undone(index, withInner: $0)
    }
    earlier.take(index)
    return decision
  }

  private func finished(
    _ record: OpRecord, _ line: ByteString, _ work: KeptWork, lineage: UInt64? = nil,
    undone: @escaping (_ withInner: Bool) -> Void
  ) throws -> KeepingDecision {
    var result = Value.null
    var writes: [(key: Key, value: Value)] = []
    for write in record.writes {
      let bytes = try store.load(write)
      let value = try bytes.map { try values.decode($0.bytes) } ?? .null
      if write.name == Self.resultName {
        result = value
      } else {
        writes.append((work.loop.keys.intern(write.name), value))
      }
    }
    let keys = work.loop.keys
    return .finished(
      KnownEnd(
        writes: writes, result: result, reads: record.reads.map { keys.intern($0.name) },
        line: line, lineage: lineage, undone: undone))
  }

  /// An op that an earlier process had finished has been undone.
  private func undone(_ index: Int, withInner: Bool) {
    writeUndone(earlier.records[index])
    if !withInner { return }
    let outer = earlier.records[index]
    let path = outer.path.bytes + [UInt8(ascii: "/")]
    for record in earlier.records
    where record.state == .finished && record.began >= outer.began && record.ended <= outer.ended {
      if record.path.bytes.starts(with: path) { writeUndone(record) }
    }
  }

  package func undone(within path: ByteString) {
    let prefix = path.bytes + [UInt8(ascii: "/")]
    // They are on the disk: an op has finished only then.
    for record in (try? store.records(of: kept.id)) ?? []
    where record.state == .finished && record.path.bytes.starts(with: prefix) {
      writeUndone(record)
    }
  }

  private func writeUndone(_ record: OpRecord) {
    var record = record
    if isEnded { return }
    record.state = .undone
    record.writes = []
    kept.write(record)
  }

  // MARK: Ops that an earlier process knew

  private enum Answer {
    /// It is executed, with the lineage of the execution that it repeats, and a line that says why.
    case execute(UInt64?, ByteString?)
    case decided(KeepingDecision)
  }

  /// Decides about an op that no finished one equals, and logs why it is executed again.
  private func again(
    _ work: KeptWork, _ content: OpContent, _ record: OpRecord
  ) throws -> Answer {
    // The same op, which had started or failed.
    if let index = earlier.take(
      content, where: { $0.state != .finished && reads(of: $0, fit: work) })
    {
      let known = earlier.records[index]
      if known.state == .undone {
        // With another key: a server that knows the first one would take it as done.
        let lineage = UInt64(known.key.description, radix: 16).map { ($0 ^ 0x756E_646F).spread }
        return .execute(lineage, "Again: it was undone")
      }
      let hadFailed = known.state == .failed
      if known.isOnce, !hadFailed {
        let why: ByteString = "had started in run \(kept.id), and may have had its effect"
        if let decision = try settle(work, index, record, why) { return .decided(decision) }
      }
      return .execute(
        UInt64(known.key.description, radix: 16),
        hadFailed
          ? "Again: it had failed\(known.error.map { ": \(Value.bytes($0).logText)" } ?? "")"
          : "Again: it had started, but not finished")
    }
    guard
      let index = earlier.latest(
        at: record.path,
        where: {
          $0.op == work.name && ($0.state == .finished || $0.isOnce && $0.state == .started)
        })
    else { return .execute(nil, nil) }
    let known = earlier.records[index]
    let difference = try difference(between: known, and: record, work)
    if known.state == .finished, trustsCode, difference.isOnlyCode {
      let line: ByteString = "Kept from run \(kept.id): its code changed, but is trusted"
      return .decided(try adopted(index, record, line, work))
    }
    if known.isOnce {
      let why: ByteString =
        known.state == .finished
        ? "had finished in run \(kept.id), and \(difference.text)"
        : "had started in run \(kept.id), and may have had its effect"
      if let decision = try settle(work, index, record, why) { return .decided(decision) }
    }
    // It stays for an op that equals it elsewhere.
    return .execute(nil, "Again: \(difference.text)")
  }

  /// Takes over a record that isn't equal, and records that, so that the next process does so by itself.
  private func adopted(
    _ index: Int, _ record: OpRecord, _ line: ByteString, _ work: KeptWork
  ) throws -> KeepingDecision {
    let decision = try finished(index, line, work)
    var known = earlier.records[index]
    known.code = record.code
    known.inputs = record.inputs
    known.path = record.path
    known.place = record.place
    known.reads = try known.reads.map {
      let value = work.data.get(work.loop.keys.intern($0.name))
      return KeptInput(name: $0.name, digest: try store.digest(of: value) ?? .incomparable)
    }
    if known.state != .finished {
      known.state = .finished
      known.ended = record.began
    }
    if !isEnded { kept.write(known) }
    return decision
  }

  /// What a settlement says about an op with an effect that must not be repeated; nil for executing it.
  private func settle(
    _ work: KeptWork, _ index: Int, _ record: OpRecord, _ why: ByteString
  ) throws -> KeepingDecision? {
    switch settlements[work.shownName] ?? settlements[work.name] {
    case .again?: return nil
    case .done?:
      return try adopted(index, record, "Kept from run \(kept.id): settled as done", work)
    case .fail?:
      return .refuse(FlowError(.error, "[\(work.shownName)] is settled as failed"))
    case nil:
      return .refuse(
        FlowError(
          .error,
          """
          [\(work.shownName)] \(why): it is executed only once, so say what became of it: \
          --settle '\(work.name)=done', '\(work.name)=again' or '\(work.name)=fail'
          """))
    }
  }

  /// What differs between a record and the execution that stands at its place now.
  private func difference(
    between known: OpRecord, and record: OpRecord, _ work: KeptWork
  ) throws -> (text: ByteString, isOnlyCode: Bool) {
    let hasChanged = known.code != record.code
    var names: [ByteString] = []
    for input in record.inputs where input.digest == .incomparable {
      return ("<\(input.name)> can't be compared", false)
    }
    for input in record.inputs where !known.inputs.contains(input) { names.append(input.name) }
    for input in known.inputs where !record.inputs.contains(where: { $0.name == input.name }) {
      names.append(input.name)
    }
    for read in known.reads {
      let digest = try store.digest(of: work.data.get(work.loop.keys.intern(read.name)))
      if digest != read.digest { names.append(read.name) }
    }
    if hasChanged {
      let place: ByteString = record.place.map { " (\($0))" } ?? ""
      return ("its code changed\(place)", names.isEmpty)
    }
    if names.isEmpty { return ("it has been executed already for another op", false) }
    let shown = names.prefix(3).map { "<\($0)>" }.reduce("") { $0.isEmpty ? $1 : $0 + ", " + $1 }
    let rest: ByteString = names.count > 3 ? " and \(names.count - 3) more" : ""
    return ("\(shown)\(rest) \(names.count == 1 ? "differs" : "differ")", false)
  }

  /// Whether the keys that an op read without having declared them have the same values now.
  private func reads(of record: OpRecord, fit work: KeptWork) -> Bool {
    record.reads.allSatisfy { read in
      let value = work.data.get(work.loop.keys.intern(read.name))
      guard let digest = try? store.digest(of: value) else { return false }
      return digest == read.digest
    }
  }

  // MARK: Code

  private func code(of work: KeptWork) throws -> (digest: Digest, place: ByteString?) {
    if let code, work.codeOrigin != nil, code.origin == work.codeOrigin {
      return (code.digest, code.place)
    }
    let form = try work.code()
    let digest = try store.digest(of: work.name.bytes + [0] + (form?.form ?? []))
    code = (work.codeOrigin, digest, form?.place)
    return (digest, form?.place)
  }

  // MARK: For the executions

  /// Writes the start of an execution, unless it has ended by the next turn of the loop: then its end says all, and a
  /// crash before that turn would lose both.
  private func noteStart(_ keeping: OpKeeping, on loop: EventLoop) {
    begun.append(keeping)
    if begun.count > 1 { return }
    loop.enqueue { [weak self] in
      guard let self else { return }
      let started = begun
      begun = []
      for keeping in started { keeping.writeStart() }
    }
  }

  /// The digest of a value that an op reads.
  func digest(of value: Value?) -> Digest { (try? store.digest(of: value)) ?? .incomparable }

  func encode(_ value: Value) throws -> [UInt8] { try values.encode(value) }

  func write(_ record: OpRecord, then: @escaping (FlowError?) -> Void) -> Int64 {
    if isEnded {
      then(FlowError(.error, "the kept run \(kept.id) has ended"))
      return 0
    }
    return kept.write(record, then: then)
  }

  /// Records the end of the script, and waits until that and all before it is on the disk. Nothing is kept after it.
  package func end(isFinished: Bool) throws(FlowError) {
    if isEnded { return }
    isEnded = true
    kept.end(finished: isFinished)
    kept.close()
    if let error = kept.failure { throw error }
  }

  /// Warns once for each op that its result isn't for other runs.
  func warnOfCache(_ op: ByteString, _ read: ByteString) {
    if warned.insert(op).inserted {
      warn("[\(op)] isn't cached: it has read <\(read)>, which isn't in its 'needs'")
    }
  }

  /// Warns once for each op that a finished execution of it can't be kept.
  func warn(_ op: ByteString, _ why: ByteString) {
    if warned.insert(op).inserted {
      warn("[\(op)] isn't kept, so a resumed run executes it again: \(why)")
    }
  }

  /// The time of a loop in seconds since 1970.
  static func time(on loop: EventLoop) -> Double { Double(loop.clock.wallBase &+ loop.now()) / 1e9 }
}
