internal import FlowLoop
@_spi(Scripting) package import FlowEngine

/// Keeps the ops of all runs of a script in a store, and takes over what earlier processes have finished there.
///
/// Ops are found by content, the op with its code and all that it was given or has read, within the execution of the op
/// around them: see `EarlierOps`. Confined to the loop's thread.
package final class Keeper: RunKeeper, MessageKeeper {
  /// Somebody's decision about an op with `effect = "once"` that may have been executed already.
  package enum Settlement: String, CaseIterable, Sendable {
    /// It has had its effect; it isn't executed again.
    case done
    /// It is executed again.
    case again
    /// It fails.
    case fail
  }

  /// Whether the script has ended.
  private(set) var isEnded = false
  package var isSuspended = false
  /// Whether an op wasn't executed, so that the run has to be continued, whatever the script has made of that.
  private var hasRefused = false
  /// The run in the store; nil when nothing is written.
  package let kept: KeptRun?
  /// The id of the run.
  let id: ByteString
  /// The line about an op that had finished in it.
  let keptLine: ByteString
  /// Which ops are executed.
  let choice: OpChoice
  /// The paths of ops before the one from which on all are executed, whose streams aren't written again.
  var left: Set<ByteString> = []
  /// The decisions, when ops are rehearsed.
  package var rehearsal = KeptRehearsal()
  let store: JournalStore
  let files: FileContents
  let values: any KeptValues
  /// Encrypts secrets; nil when they aren't kept.
  private let cipher: StoreCipher?
  // Unchecked exclusivity, here and below: see `OpKeeping`.
  @exclusivity(unchecked) var earlier: EarlierOps
  /// Whether code that has changed counts as the same.
  let trustsCode: Bool
  /// Whether results of other runs are taken over.
  private let usesCache: Bool
  /// By the name of an op, or of an item: `PayOp`, `PayOp #3`.
  let settlements: [ByteString: Settlement]
  /// Those of their names that no op has had, neither in an earlier process nor in this one.
  package private(set) var unmetSettlements: Set<ByteString>
  /// The answers to questions of this process, by the names of their waits.
  var answers: [ByteString: Settlement] = [:]
  /// Called with a sentence for the person who runs the script.
  private let warn: (ByteString) -> Void
  /// The names of ops that a warning was about.
  private var warned: Set<ByteString> = []
  /// The code of the op whose items a group executes; it is compared once for all of them.
  @exclusivity(unchecked) var code: KeptCode?
  /// The known differences from earlier code, and the code whose parts are written.
  @exclusivity(unchecked) var changes = CodeChanges()
  /// How many ops were kept or executed, if another process has executed some.
  private var counts: KeptCounts?
  /// Executions that have begun in this turn of the loop.
  @exclusivity(unchecked) private var begun: [OpKeeping] = []
  /// The tables that executions have seen which haven't ended. Safe: each forgets its own at its end.
  @exclusivity(unchecked) var sightings = TableSightings()

  package convenience init(
    _ kept: KeptRun, in store: JournalStore, values: any KeptValues, trustsCode: Bool = false,
    usesCache: Bool = true, cipher: StoreCipher? = nil, settlements: [ByteString: Settlement] = [:],
    choice: OpChoice = .changed, warn: @escaping (ByteString) -> Void
  ) {
    self.init(
      kept, kept.id, kept.records, store, values, trustsCode, usesCache, cipher, settlements,
      choice, warn)
    kept.records = []
  }

  /// Makes one that rehearses the run of an id with its records, none for a new run, and writes nothing.
  package convenience init(
    rehearsing id: ByteString, _ records: [OpRecord], in store: JournalStore,
    values: any KeptValues, trustsCode: Bool = false, usesCache: Bool = true,
    cipher: StoreCipher? = nil
  ) {
    self.init(
      nil, id, records, store, values, trustsCode, usesCache, cipher, [:], .nothing, { _ in })
  }

  private init(
    _ kept: KeptRun?, _ id: ByteString, _ records: [OpRecord], _ store: JournalStore,
    _ values: any KeptValues, _ trustsCode: Bool, _ usesCache: Bool, _ cipher: StoreCipher?,
    _ settlements: [ByteString: Settlement], _ choice: OpChoice,
    _ warn: @escaping (ByteString) -> Void
  ) {
    self.kept = kept
    self.id = id
    keptLine = "Kept from run \(id)"
    self.store = store
    files = FileContents(store, kept)
    self.values = values
    self.trustsCode = trustsCode
    self.usesCache = usesCache
    self.cipher = cipher
    self.settlements = settlements
    self.choice = choice
    self.warn = warn
    unmetSettlements = Set(settlements.keys)
    if !settlements.isEmpty {
      for record in records { unmetSettlements.subtract([record.op, record.shownName]) }
    }
    earlier = EarlierOps(records)
    if !records.isEmpty { counts = KeptCounts() }
  }

  /// The ops of earlier processes that are executed only once, as decisions name them.
  package var namesOfOnce: [ByteString] {
    Set(earlier.records.filter(\.isOnce).map(\.shownName)).sorted()
  }

  /// How much of an earlier process was kept, and how much is executed again and why: `58 kept, 1 again: had failed`; nil for a
  /// run that begins.
  package var summary: ByteString? { counts?.text }
  /// Whether an op is executed again that another process had finished.
  package var repeatsFinished: Bool { counts?.repeatsFinished == true }

  package var runID: ByteString? { kept?.id }

  package private(set) lazy var messageBox: MessageBox? = kept.map { kept in
    MessageBox(KeptMessages(kept, values) { [weak self] in self?.isSuspended ?? false })
  }

  /// Only an order depends on it: a store that can't be read stops nothing here.
  private lazy var experience = kept.flatMap { try? Experience(before: $0.number, in: store) }

  package func seconds(at path: @autoclosure () -> ByteString) -> Double? {
    guard let experience, !experience.isEmpty else { return nil }
    return experience.seconds(at: path())
  }

  package func decide(_ work: KeptWork) -> KeepingDecision {
    if !unmetSettlements.isEmpty { unmetSettlements.subtract([work.name, work.names().shown]) }
    // Nothing is executed unrecorded.
    if let failure = kept?.failure { return refuse(failure) }
    do {
      let code = code(of: work)
      work.codeProblem = code.problem
      let inputs = try inputs(of: work)
      if work.cacheKey != nil, inputs[0].digest == .incomparable {
        return .fail(
          FlowError(
            .error,
            "the cache key of [\(work.names().shown)] has a value in it that can't be compared")
        )
      }
      let isComparable =
        code.problem == nil && !work.passesItems
        && !inputs.contains { $0.digest == .incomparable }
      if isComparable, case .changed = choice,
        let decision = try plainlyFinished(OpContent(code: code.digest, inputs: inputs), work)
      {
        return decision
      }
      let names = work.names()
      let record = OpRecord(
        outer: place(of: work).outer, path: work.loop.secrets.redacted(names.path),
        op: work.loop.secrets.redacted(work.name),
        label: names.label.map { work.loop.secrets.redacted($0) }, code: code.digest,
        inputs: inputs,
        state: .started, began: Self.time(on: work.loop), key: "", isOnce: work.isOnce,
        place: code.place.map { work.loop.secrets.redacted($0) })
      let decision = try choose(work, record, isComparable: isComparable)
      if case .refuse(let error) = decision { return refuse(error) }
      return decision
    } catch let unread as UnreadFiles {
      return .later(
        FileReading(unread.paths, files, on: work.loop, after: work.reading as? FileReading))
    } catch {
      return refuse(.from(error))
    }
  }

  /// The decision about an op that has finished, if that needs no record of it: the usual case, so that a run with very
  /// many finished items is continued at once.
  private func plainlyFinished(
    _ content: OpContent, _ work: KeptWork
  ) throws -> KeepingDecision? {
    guard work.outputFiles.isEmpty, let index = try takeFinished(content, work) else {
      return nil
    }
    // A record that was within another one is written again.
    if earlier.records[index].outer == place(of: work).outer,
      earlier.records[index].writes.allSatisfy({ $0.files == nil }),
      let decision = try? finished(index, keptLine, work)
    {
      return decision
    }
    earlier.release(index)
    return nil
  }

  /// Decides as a person has chosen.
  private func choose(
    _ work: KeptWork, _ record: OpRecord, isComparable: Bool
  ) throws -> KeepingDecision {
    switch choice {
    case .changed: break
    case .nothing: return try rehearse(work, record, isComparable: isComparable)
    case .only(let names):
      if names.contains(where: { work.isWithin($0) }) {
        if work.lacksItems { return unknown(work, record) }
        return try repeated(work, record)
      }
      if let taker = chosenTaker(of: work, names) {
        return try repeated(work, record, "Again: [\(taker)] takes items of it")
      }
      return try rehearse(work, record, isComparable: isComparable)
    case .from(let name):
      let isLeft = staysWithWriter(work, record)
      if !isLeft, rehearsal.executed > 0 || work.isWithin(name) {
        return try repeated(work, record)
      }
      if let decision = try before(work, record, isComparable: isComparable) { return decision }
      if isLeft { return .refuse(FlowError(.error, "nothing of its streams is kept")) }
    }
    return try decide(work, record, isComparable: isComparable)
  }

  private func refuse(_ error: FlowError) -> KeepingDecision {
    // Of a run of which little was executed nothing new is said.
    if case .only = choice {} else { hasRefused = true }
    return .refuse(error)
  }

  private func decide(
    _ work: KeptWork, _ record: OpRecord, isComparable: Bool
  ) throws -> KeepingDecision {
    var record = record
    let content = OpContent(code: record.code, inputs: record.inputs)
    var line: ByteString?
    var lineage: UInt64?
    var replaced: Int?
    var interruption: OpRecord.State?
    if isComparable, let index = try takeFinished(content, work) {
      var lost: ByteString
      do {
        if let change = try fileChange(since: earlier.records[index], work) {
          lost = change
        } else {
          return try keptFinished(index, record, work)
        }
      } catch let unread as UnreadFiles {
        earlier.release(index)
        throw unread
      } catch {
        lost = "what it had set can't be read: \(FlowError.from(error).message)"
      }
      let known = earlier.records[index]
      let why: ByteString = "had finished in run \(id), but \(lost)"
      if known.isOnce, let decision = try settle(work, index, record, why) { return decision }
      record.id = known.id
      lineage = Self.lineage(after: known)
      line = "Again: \(lost)"
    }
    if isComparable, line == nil {
      switch try cached(work, &record) {
      case .decided(let decision)?: return decision
      case .execute(_, let why, _)?: line = why
      case nil: break
      }
    }
    if line == nil, !earlier.records.isEmpty {
      switch try again(work, content, record) {
      case .execute(let known, let why, let other):
        replaced = other
        if let known {
          // The record stands for all executions of the op, the latest with its key.
          record.id = known.id
          lineage = Self.lineage(after: known)
          interruption = known.state
        }
        line = why
      case .decided(let decision): return decision
      }
    }
    return execute(work, record, lineage, line, replaced, interruption)
  }

  /// Where the execution of a work stands.
  func place(of work: KeptWork) -> OpPlace {
    guard let outer = work.outer as? OpKeeping else { return OpPlace(lineage: work.lineage) }
    return outer.place(within: work.lineage)
  }

  /// Takes the finished op that equals one; nil without one.
  func takeFinished(_ content: OpContent, _ work: KeptWork) throws -> Int? {
    try take(content, work) { $0.state == .finished && $0.hasOutput(of: work) }
  }

  /// Takes the record of an execution, if it is one that is wanted.
  ///
  /// - Throws: `UnreadFiles` when the content of a file has to be read first.
  func take(
    _ content: OpContent, _ work: KeptWork, where isWanted: (OpRecord) -> Bool
  ) throws -> Int? {
    var unread: Set<ByteString> = []
    let taken = earlier.take(
      content, at: place(of: work), isEqual: { reads(of: $0, fit: work, &unread) },
      where: isWanted)
    if taken == nil, !unread.isEmpty { throw UnreadFiles(paths: unread) }
    return taken
  }

  /// The decision about an op that has finished; what another execution had executed is from now on of this one.
  private func keptFinished(
    _ index: Int, _ record: OpRecord, _ work: KeptWork
  ) throws -> KeepingDecision {
    let decision = try finished(index, keptLine, work)
    if earlier.records[index].outer != record.outer {
      earlier.setOuter(of: index, record.outer)
      if !isEnded { kept?.write(earlier.records[index]) }
    }
    return decision
  }

  /// The decision to execute an op; whether an earlier process had begun the same execution, and didn't record its end.
  func execute(
    _ work: KeptWork, _ record: OpRecord, _ lineage: UInt64?, _ line: ByteString?,
    _ replaced: Int? = nil, _ interruption: OpRecord.State? = nil
  ) -> KeepingDecision {
    var record = record
    let place = place(of: work)
    let lineage = lineage ?? earlier.lineage(at: place, record)
    record.key = lineage.shortHexadecimal
    if let line, line.hasPrefix("Again: ") {
      record.why = work.loop.secrets.redacted(ByteString(line.bytes.dropFirst(7)))
    }
    let keeping = OpKeeping(
      self, record, lineage: lineage, work, depth: place.depth, replaced: replaced,
      interruption: interruption)
    noteStart(keeping, on: work.loop)
    noteCode(record.code, work)
    counts?.noteExecution(line)
    return .execute(keeping, line: line)
  }

  /// The answer about an op whose result may come from another run; nil if there is none. Gives the record the key
  /// by which others find it.
  func cached(_ work: KeptWork, _ record: inout OpRecord) throws -> Answer? {
    guard let cache = work.cache else { return nil }
    let content = OpContent(code: record.code, inputs: record.inputs)
    let version = try store.digest(cache.version)
    let key = content.code.followed(by: content.inputs).followed(by: version)
    record.cacheKey = key
    guard usesCache, let (run, known) = try store.cached(key), known.hasOutput(of: work) else {
      return nil
    }
    // A clock that was set back makes a result come from the future: nobody knows how old it is.
    let age = record.began - known.ended
    if let expires = cache.expires?.inSeconds, age > expires || age < 0 { return nil }
    if let change = try fileChange(since: known, work) ?? dependencyChange(since: known, work) {
      return .execute(nil, "Again: \(change)", replacing: nil)
    }
    do {
      // An op with an undo has no cache.
      return .decided(try finished(known, of: run, "Kept from run \(run)", work) { $0(nil) })
    } catch {
      // A large value may have gone with its run, or it is encrypted.
      let why = FlowError.from(error).message
      return .execute(nil, "Again: what it had set can't be read: \(why)", replacing: nil)
    }
  }

  /// The decision about what a record says to have finished.
  func finished(
    _ index: Int, _ line: ByteString, _ work: KeptWork
  ) throws -> KeepingDecision {
    // Part by part: a copy of the whole record costs more than the rest.
    let decision = try finished(
      earlier.records[index].writes, earlier.records[index].reads, of: id, line, work,
      lineage: Self.lineage(earlier.records[index].key, earlier.records[index].state), index,
      record: { earlier.records[index] }
    ) { [self] in undone([index], then: $0) }
    earlier.take(index)
    return decision
  }

  func finished(
    _ record: OpRecord, of run: ByteString, _ line: ByteString, _ work: KeptWork,
    undone: @escaping UndoneKeeping
  ) throws -> KeepingDecision {
    try finished(
      record.writes, record.reads, of: run, line, work, record: { record }, undone: undone)
  }

  private func finished(
    _ known: [KeptWrite], _ reads: [KeptInput], of run: ByteString, _ line: ByteString,
    _ work: KeptWork, lineage: UInt64? = nil, _ index: Int? = nil, record: () -> OpRecord,
    undone: @escaping UndoneKeeping
  ) throws -> KeepingDecision {
    var result = FlowValue.null
    var writes: [(key: DataKey, value: FlowValue)] = []
    var undos = KeptUndos()
    var tables = KeptTables()
    for write in known {
      let bytes = try store.load(write)
      let value = try bytes.map { try decode($0.bytes, write, record, of: run) } ?? .null
      if write.isResult {
        result = value
      } else if write.name != OpRecord.partMark, !undos.take(write.name, value, work.loop.keys),
        !tables.take(write.name, value, work.loop.keys)
      {
        let key = work.loop.keys.intern(write.name)
        writes.append((key, tables.value(for: key, or: value, in: work.data)))
      }
    }
    counts?.kept += 1
    let keys = work.loop.keys
    let outer = work.outer as? OpKeeping
    if let outer {
      for read in reads where read.isDependency {
        if let folder = read.folder { outer.makesFolder(folder) } else { outer.dependsOn(read.key) }
      }
    }
    // Ops that execute now see the changes, which aren't theirs.
    for (key, _) in tables.changes {
      guard case .opaque(let table)? = work.data.get(key) else { continue }
      _ = share(table) { other in outer.map { $0 === other || $0.isWithin(other) } ?? false }
    }
    return .finished(
      KnownEnd(
        changes: tables.changes, writes: writes, result: result,
        reads: reads.filter { !$0.isDependency }.map { keys.intern($0.name) },
        line: line, lineage: lineage,
        undos: undos.all.map { undo in
          KnownUndo(undo) { [self] then in
            self.undone(index.map { inner(of: $0, around: undo.lineage) } ?? [], then: then)
          }
        }, undone: undone,
        innerUndone: { [self] then in
          self.undone(index.map { earlier.within($0) } ?? [], then: then)
        }))
  }

  private func decode(
    _ bytes: [UInt8], _ write: KeptWrite, _ record: () -> OpRecord, of run: ByteString
  ) throws -> FlowValue {
    if !write.isSecret { return try values.decode(bytes) }
    guard let cipher else {
      throw FlowError(
        .error, "<\(write.name)> is encrypted, and FLOWLUA_STORE_KEY isn't set")
    }
    guard let open = cipher.decrypt(bytes, for: record().binding(of: write.name, in: run)),
      let isSecret = open.last
    else {
      throw FlowError(
        .error, "<\(write.name)> was encrypted with another FLOWLUA_STORE_KEY")
    }
    let value = try values.decode(Array(open.dropLast()))
    return isSecret == 1 ? .secret(value) : value
  }

  /// A value of a record as bytes that nobody can read who hasn't the key; nil without one.
  func encrypt(
    _ bytes: [UInt8], isSecret: Bool, _ name: ByteString, _ record: OpRecord
  ) throws -> [UInt8]? {
    guard let cipher else { return nil }
    return try cipher.encrypt(
      bytes + [isSecret ? 1 : 0], for: record.binding(of: name, in: id))
  }

  // MARK: Code

  private func code(of work: KeptWork) -> KeptCode {
    if let code, work.codeOrigin != nil, code.origin == work.codeOrigin { return code }
    var made = KeptCode(origin: work.codeOrigin)
    do {
      let form = try work.code()
      made.digest = try store.digest(of: work.name.bytes + [0] + (form?.bytes ?? []))
      made.place = form?.place
      if let form { made.details = form.details }
    } catch {
      made.problem = FlowError.from(error).message
    }
    code = made
    return made
  }

  // MARK: For the executions

  /// Writes the start of an execution, unless it has ended by the next turn of the loop: then its end says all, and a
  /// crash before that turn would lose both.
  private func noteStart(_ keeping: OpKeeping, on loop: FlowEventLoop) {
    begun.append(keeping)
    if begun.count > 1 { return }
    loop.enqueue { [weak self] in
      guard let self else { return }
      let started = begun
      begun = []
      for keeping in started { keeping.writeStart() }
    }
  }

  // MARK: Tables that executions share

  /// Tells the executions that have seen a table, besides some, that its changes aren't theirs alone; returns whether there
  /// are any.
  func share(_ table: any OpaqueValue, besides isExcluded: (OpKeeping) -> Bool) -> Bool {
    var isShared = false
    for (other, place) in sightings.ops(thatHaveSeen: table) where !isExcluded(other) {
      other.shares(place)
      isShared = true
    }
    return isShared
  }

  /// The digest of a value that an op reads.
  func digest(of value: FlowValue?) -> Digest { (try? store.digest(of: value)) ?? .incomparable }

  func encode(_ value: FlowValue) throws -> [UInt8] { try values.encode(value) }

  func write(_ record: OpRecord, then: ((FlowError?) -> Void)?) -> Int64 {
    if isEnded {
      then?(FlowError(.error, "the kept run \(id) has ended"))
      return 0
    }
    return kept?.write(record, then: then) ?? 0
  }

  /// Records the end of the script, and waits until that and all before it is on the disk. Nothing is kept after it.
  /// `tidy` is called before the run counts as finished.
  package func end(_ end: KeptRunEnd, _ tidy: () -> Void) throws(FlowError) {
    if isEnded { return }
    isEnded = true
    kept?.end(hasRefused && end == .finished ? .stopped : end)
    kept?.close(tidy)
    if let error = kept?.failure { throw error }
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

  /// Warns once for each op that its record has changes of others, too.
  func warnOfShared(_ op: ByteString, _ why: ByteString) {
    if warned.insert(op).inserted {
      warn("[\(op)] is kept with what other ops have changed: \(why)")
    }
  }

  /// The time of a loop in seconds since 1970.
  static func time(on loop: FlowEventLoop) -> Double {
    Double(loop.timeSource.wallBase &+ loop.now()) / 1e9
  }
}
