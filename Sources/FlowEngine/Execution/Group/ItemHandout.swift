/// The items of a group that an `ItemRunner` has: which are out, at which attempt, and which have
/// to be handed out again. Logs for them the events that an execution logs for its op.
final class ItemHandout: ExecutedItemGroup {
  /// How often an item is started, at most, when its worker or process is lost.
  static let maximumAttempts: UInt32 = 3

  private let work: ItemWork
  private let source: ListSource
  private let scope: UInt32
  // Safe: a runner may keep the handout after the group's end, so the group detaches it then. (A
  // weak reference would make every retain of the group slow.)
  private var group: Unmanaged<GroupExecution>?
  private let runner: any ItemRunner
  private var next = 0
  /// How many items are out, or have ended without being kept yet.
  @exclusivity(unchecked) private(set) var count = 0
  /// How many items were really started, not known to have finished.
  private(set) var executed = 0
  /// Decides about items, in a kept run.
  private let keeper: (any RunKeeper)?
  /// Items about which the keeper can't decide yet.
  private var undecided: [Int: KeptWork] = [:]
  /// Those about which it can decide now.
  private var decidable: [Int] = []
  /// The keeping of each item that is out, in a kept run.
  private var keepings: [Int: any KeptExecution] = [:]
  /// The attempt at each item that is out, else 0: an array, because there can be very many items.
  @exclusivity(unchecked) private var attempts: ContiguousArray<UInt32>
  /// The start times of items that haven't ended; queued items aren't in it. A lost item stays in
  /// it, because its start is in the log already.
  @exclusivity(unchecked) private var began: [Int: Int64] = [:]
  /// Lost items that haven't been handed out again yet, each with the number of its next attempt.
  private var lost: [(index: Int, attempt: UInt32)] = []
  private var cancellation: FlowError?

  init(
    _ work: ItemWork, _ source: ListSource, scope: UInt32, group: GroupExecution,
    runner: any ItemRunner
  ) {
    self.work = work
    self.source = source
    self.scope = scope
    self.group = .passUnretained(group)
    self.runner = runner
    keeper = work.parent.isWithinEnding ? nil : work.run.keeper
    attempts = ContiguousArray(repeating: 0, count: source.count)
    runner.attach(to: self)
  }

  deinit { runner.detach() }

  /// Disconnects the ended group: a runner that still holds this handout reaches nothing.
  func detach() {
    group = nil
    runner.detach()
  }

  private var loop: FlowEventLoop { work.run.loop }
  private var log: EventLog { work.run.log }

  /// Whether all items have been handed out, and none has to be handed out again.
  var isExhausted: Bool { next == source.count && lost.isEmpty && decidable.isEmpty }

  // MARK: Called by the group

  /// Hands out a batch of at most `most` items; returns how many, which is 0 when there is none or the
  /// runner takes none now.
  func startNext(atMost most: Int) -> Int {
    // In a kept run an item is out until it is kept, so that a crash leaves few in doubt.
    let limit = runner.queues && keeper == nil ? Int.max : work.maxConcurrent
    let room = min(limit - count, runner.capacity, most)
    guard room > 0, !isExhausted else { return 0 }
    let batch: ItemBatch
    if let again = lost.popLast() {
      batch = ItemBatch(first: again.index, count: 1, attempt: again.attempt)
    } else {
      if let keeper { return startNextKept(keeper) }
      batch = ItemBatch(first: next, count: min(room, source.count - next), attempt: 1)
      next += batch.count
    }
    executed += batch.count
    return start(batch)
  }

  /// Hands out the next item unless the keeper of the run knows its output; returns how many, where an item that had
  /// finished counts as well.
  @inline(never)
  private func startNextKept(_ keeper: any RunKeeper) -> Int {
    let index: Int
    let work: KeptWork
    if let again = decidable.first, let known = undecided.removeValue(forKey: again) {
      decidable.removeFirst()
      (index, work) = (again, known)
    } else {
      index = next
      next += 1
      work = keptWork(index)
    }
    if let error = (work.reading as? CacheKeyExecution)?.takeKey(work) {
      count += 1
      end(index, 1, output: .null, error: error, time: loop.now())
      return 1
    }
    if let computation = CacheKeyExecution(
      for: self.work.op, work, bucket: self.work.data, parent: self.work.parent)
    {
      computation.setItem(self.work.itemKey, item(at: index))
      computation.setPlace(scope: scope, position: position(index), index: index + 1)
      read(computation, for: work, index)
      return 1
    }
    switch keeper.decide(work) {
    case .later(let reading):
      read(reading, for: work, index)
      return 1
    case .execute(let keeping, let line):
      if let line {
        began[index] = logStart(index, loop.now())
        logLine(index, attempt: 1, line)
      }
      keepings[index] = keeping
      executed += 1
      return start(ItemBatch(first: index, count: 1, attempt: 1))
    case .finished(let known):
      began[index] = logStart(index, loop.now())
      logLine(index, attempt: 1, known.line, .kept)
      count += 1
      self.work.parent.noteKept(undone: undone(all: [known.innerUndone, known.undone]))
      let output = known.writes.first { $0.key == self.work.collectKey }?.value ?? .null
      end(index, 1, output: output, error: nil, time: loop.now())
      return 1
    case .fail(let error):
      count += 1
      end(index, 1, output: .null, error: error, time: loop.now())
      return 1
    case .refuse(let error):
      count += 1
      endRun(index, error)
      end(index, 1, output: .null, error: error, time: loop.now())
      return 1
    }
  }

  /// Waits for what the decision about an item depends on; until then the item is out.
  private func read(_ reading: any KeptReading, for work: KeptWork, _ index: Int) {
    work.reading = reading
    undecided[index] = work
    count += 1
    reading.begin { [self] in
      if let cancellation {
        undecided[index] = nil
        return end(index, 1, output: .null, error: cancellation, time: loop.now())
      }
      count -= 1
      decidable.append(index)
      group?.lend { $0.schedule() }
    }
  }

  /// The description of an item for the keeper of the run.
  private func keptWork(_ index: Int) -> KeptWork {
    let (op, keys) = (work.op, loop.keys)
    var inputs: [(name: ByteString, value: FlowValue?)] = []
    for (key, _) in op.needs(on: loop) where key != work.itemKey {
      work.parent.noteRead(key)
      inputs.append((keys.name(of: key), work.data.get(key)))
    }
    let item = item(at: index).plain
    inputs.append((keys.name(of: work.itemKey), item))
    let kept = KeptWork(
      name: op.name,
      // Safe: the work is needed only while the group hands out items.
      names: { [unowned self] in
        KeptNames(
          label: log.label(scope: scope, position: position(index)),
          path: work.run.path(scope: scope, position: position(index))
        ) { self.displayName(index) }
      },
      code: { try op.codeForm() },
      codeOrigin: KeptWork.CodeOrigin(
        op: ObjectIdentifier(op), run: work.run.id, scope: scope),
      inputs: inputs, output: work.collectKey, data: work.data,
      lineage: work.run.lineage(scope: scope, position: position(index)),
      outer: work.parent.outerKeeping, isWithinUndo: false, cache: op.cache, loop: loop)
    kept.setFiles(of: op) { $0 == work.itemKey ? item : work.data.get($0) }
    return kept
  }

  private func start(_ batch: ItemBatch) -> Int {
    for index in batch.first..<batch.first + batch.count {
      attempts[index] = batch.attempt
    }
    count += batch.count
    runner.start(batch)
    return batch.count
  }

  /// Has the runner stop the items that are out; an item that ends from now on ends with `error`.
  func cancel(_ error: FlowError) {
    guard cancellation == nil else { return }
    cancellation = error
    dropLost(error)
    dropDecidable(error)
    for work in undecided.values { work.reading?.cancel() }
    runner.cancel(error)
  }

  /// Ends each item that is out as stalled; false when none is.
  func failStalled() -> Bool {
    let stalled = attempts.indices.filter { attempts[$0] != 0 }
    for index in stalled {
      let error = FlowError.stalled(op: displayName(index))
      end(index, attempts[index], output: .null, error: error, time: loop.now())
    }
    return !stalled.isEmpty
  }

  // MARK: Called by the runner

  func item(at index: Int) -> FlowValue {
    loop.checkThread()
    guard index >= 0, index < source.count else { return .null }
    let item = source.item(at: index)
    if item.isSecret { log.hide(item) }
    return item
  }

  func itemStarted(_ index: Int, attempt: UInt32, time: Int64?) {
    guard isOut(index, attempt), began[index] == nil else { return }
    began[index] = logStart(index, plausible(time, since: log.began))
  }

  func itemLogged(_ index: Int, attempt: UInt32, _ text: ByteString) {
    guard isOut(index, attempt) else { return }
    logLine(index, attempt: attempt, text)
  }

  func itemEnded(_ index: Int, attempt: UInt32, output: FlowValue, error: FlowError?, time: Int64?)
  {
    guard isOut(index, attempt) else { return }
    let time = plausible(time, since: began[index] ?? log.began)
    end(index, attempt, output: output, error: error, time: time)
  }

  func itemLost(_ index: Int, attempt: UInt32) {
    guard isOut(index, attempt) else { return }
    let isLast = attempt >= Self.maximumAttempts
    if cancellation != nil || isLast {
      let error = FlowError(
        .error, "[\(displayName(index))] was lost \(attempt) times with what executed it")
      end(index, attempt, output: .null, error: error, time: loop.now())
      return
    }
    takeBack(index)
    if began[index] != nil {
      logLine(
        index, attempt: attempt,
        "Retry \(attempt + 1)/\(Self.maximumAttempts) in 0s: lost with what executed it")
    }
    lost.append((index, attempt + 1))
    group?.lend { $0.schedule() }
  }

  func items(of batch: ItemBatch) -> ContiguousArray<FlowValue> {
    loop.checkThread()
    let range = (batch.first..<batch.first + batch.count).clamped(to: 0..<source.count)
    let items = source.items(range)
    for item in items where item.isSecret { log.hide(item) }
    return items
  }

  func labels(of batch: ItemBatch) -> ContiguousArray<ByteString> {
    if log.labels.isEmpty { return [] }
    return ContiguousArray(
      (batch.first..<batch.first + batch.count).map {
        log.label(scope: scope, position: position($0)) ?? ""
      })
  }

  func itemMade(folder path: ByteString, _ index: Int) { keepings[index]?.makesFolder(path) }

  func itemsExecuted(_ slice: LogSlice, lane: UInt8, _ ends: ItemEnds) {
    loop.checkThread()
    log.append(slice, scope: scope, lane: lane) { index, time in
      if index >= 0, index < source.count, attempts[index] != 0 { began[index] = time }
    }
    var failures = ends.failures.makeIterator()
    var failure = failures.next()
    for (place, index32) in ends.indices.enumerated() {
      let index = Int(index32)
      var error = cancellation
      if let failed = failure, failed.place == place {
        error = error ?? attributed(failed.error, index)
        failure = failures.next()
      }
      guard index >= 0, index < attempts.count, attempts[index] != 0 else { continue }
      attempts[index] = 0
      if !began.isEmpty { began[index] = nil }
      hasEnded(index, output: ends.outputs[place], error: error)
    }
  }

  func capacityChanged() {
    loop.checkThread()
    group?.lend { $0.schedule() }
  }

  // MARK: Ends

  /// Whether this attempt at the item is the one that counts and hasn't ended.
  private func isOut(_ index: Int, _ attempt: UInt32) -> Bool {
    loop.checkThread()
    return attempt != 0 && attempts.indices.contains(index) && attempts[index] == attempt
  }

  /// Notifies the group of the end of an item, in a kept run when that is kept.
  private func hasEnded(_ index: Int, attempt: UInt32 = 1, output: FlowValue, error: FlowError?) {
    guard !keepings.isEmpty, let keeping = keepings.removeValue(forKey: index) else {
      count -= 1
      group?.lend { $0.itemEnded(index, output: output, error: error) }
      return
    }
    let end = KeptEnd(
      error: error, attempt: Int(attempt), data: nil,
      outputs: work.collectKey.map { [($0, output)] } ?? [])
    keeping.keepEnd(end) { [self] problem in
      count -= 1
      if let problem {
        endRun(index, problem)
      } else if error == nil, group != nil {
        work.parent.noteKept(undone: keeping.keepUndone)
      }
      group?.lend {
        $0.itemEnded(
          index, output: problem == nil ? output : .null,
          error: error ?? attributed(problem, index))
      }
    }
  }

  /// Fails the whole run: what became of an item isn't known, or can't be kept.
  private func endRun(_ index: Int, _ error: FlowError) {
    guard let error = attributed(error.final, index) else { return }
    group?.lend { $0.failRun(error) }
  }

  /// Marks the item as no longer out.
  private func takeBack(_ index: Int) {
    attempts[index] = 0
    count -= 1
  }

  private func attributed(_ error: FlowError?, _ index: Int) -> FlowError? {
    error.map {
      log.redacted(
        $0.attributed(
          to: displayName(index), at: work.run.path(scope: scope, position: position(index))))
    }
  }

  private func end(
    _ index: Int, _ attempt: UInt32, output: FlowValue, error: FlowError?, time: Int64
  ) {
    attempts[index] = 0
    // An item ends with the error that stopped it, whatever its code does after the stop.
    var error = cancellation ?? error
    if error == nil, let key = work.collectKey, output.isNull, !work.isOutputOptional {
      error = .missingOutput(loop.keys.name(of: key))
    }
    error = attributed(error, index)
    let began = began.removeValue(forKey: index)
    // An item that never started and was dropped from a queue has no line in the log.
    if began != nil || cancellation == nil {
      let began = began ?? logStart(index, time)
      log.append(
        .finish, time: time, scope: scope, position: position(index),
        attempt: Int(attempt), first: error.map { log.payload($0.logLine) } ?? .none,
        second: .integer(time &- began))
    }
    hasEnded(index, attempt: attempt, output: output, error: error)
  }

  /// Ends the items that wait to be started again, with the error that stopped the group.
  private func dropLost(_ error: FlowError) {
    let dropped = lost.sorted { $0.index < $1.index }
    lost = []
    for (index, attempt) in dropped {
      count += 1
      end(index, attempt, output: .null, error: error, time: loop.now())
    }
  }

  /// Ends the items that wait for the keeper's decision, with the error that stopped the group.
  private func dropDecidable(_ error: FlowError) {
    let dropped = decidable.sorted()
    decidable = []
    for index in dropped {
      undecided[index] = nil
      count += 1
      end(index, 1, output: .null, error: error, time: loop.now())
    }
  }

  /// A time from a runner, limited to between the last known time and now: other clocks may be
  /// wrong.
  private func plausible(_ time: Int64?, since begin: Int64) -> Int64 {
    let now = loop.now()
    return time.map { max(begin, min($0, now)) } ?? now
  }

  private func logStart(_ index: Int, _ time: Int64) -> Int64 {
    log.append(.start, time: time, scope: scope, position: position(index))
    return time
  }

  private func logLine(
    _ index: Int, attempt: UInt32, _ text: ByteString, _ kind: LogKind = .log
  ) {
    keepings[index]?.noteLine(text)
    log.append(
      kind, time: loop.now(), scope: scope, position: position(index), attempt: Int(attempt),
      first: log.payload(text))
  }

  private func position(_ index: Int) -> UInt32 { UInt32(truncatingIfNeeded: index + 1) }

  private func displayName(_ index: Int) -> ByteString {
    log.displayName(
      work.op.name, index: index + 1, scope: scope, position: position(index))
  }
}
