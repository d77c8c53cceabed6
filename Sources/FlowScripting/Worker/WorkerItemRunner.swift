internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Executes the items of a group in workers.
///
/// `max_concurrent` is divided among the participating workers: each executes at most its share at
/// a time, so that the sum can't be exceeded whatever items do, and no worker has to ask. More
/// items wait in a worker than execute there, enough to keep it busy while a report travels. Their
/// number depends on the duration of items, and shrinks towards the end of the list, so that all
/// workers end at about the same time.
final class WorkerItemRunner: ItemRunner, WorkerGroupTask {
  /// The time, in nanoseconds, for which waiting items may keep a worker busy: a few times the
  /// travel time of a report and of new items.
  private static let lookahead: Int64 = 4_000_000
  /// Items that take longer than this don't wait in workers: compared with them, the time of a
  /// message is negligible.
  private static let longItem: Int64 = 1_000_000
  private static let mostWaiting = 4096
  /// The number of items in one report from which the time of the next ones is estimated.
  private static let enoughItems = 8
  /// Towards the end of the list fewer items wait, but enough to keep a worker busy for this time:
  /// a message costs more than the remaining imbalance.
  private static let shortestLookahead: Int64 = 100_000

  /// A worker's share.
  private final class Share: WorkerTask {
    let number: UInt64
    let limit: Int
    // Safe: the runner removes itself when it is released, because the pool may keep the share
    // longer.
    unowned(unsafe) var runner: WorkerItemRunner?
    var worker: Int?
    /// Whether it has a worker, or will get one.
    var isOpen = true
    /// The number of its items.
    var count = 0
    /// The items that it got since it last had none: some of them may have ended.
    var given: [ItemBatch] = []
    /// Nanoseconds that an item takes; 0 while it isn't known.
    var itemTime: Int64 = 0

    init(_ number: UInt64, limit: Int, _ runner: WorkerItemRunner) {
      self.number = number
      self.limit = limit
      self.runner = runner
    }

    func order(for worker: Int) -> WorkerOrder? { runner?.begin(self, in: worker) }
    func handle(_ event: WorkerReport.JobEvent) {}
    func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
      runner?.lost(self, error, isReplaced: isReplaced)
    }
  }

  private let host: ScriptHost
  private var loop: FlowEventLoop { host.loop }
  /// The workers of its loop.
  private let pool: WorkerPool
  private let work: ItemWork
  private let shared: WorkerFunction
  private let plan: WorkerGroup?
  /// The error with which all passed items end.
  private var refusal: FlowError?
  private let number: UInt64
  private var shares: [Share] = []
  // Safe: the group notifies it on release. (A weak reference would make every retain of it slow.)
  private unowned(unsafe) var group: (any ExecutedItemGroup)?
  /// The number of items that haven't been passed to workers yet.
  private var remaining: Int
  private var cancellation: FlowError?

  init(
    _ host: ScriptHost, _ work: ItemWork, _ shared: WorkerFunction, arguments: WireBatch,
    keys: [ByteString], data: WireBatch
  ) {
    self.host = host
    pool = host.workers
    self.work = work
    self.shared = shared
    refusal = nil
    number = pool.makeNumber()
    remaining = work.count
    func declared(_ declarations: [Declaration]) -> [WorkerDeclaration] {
      declarations.map { WorkerDeclaration(name: $0.name, type: $0.type.name) }
    }
    plan = WorkerGroup(
      code: shared.code, arguments: arguments, name: work.op.name,
      needs: declared(work.op.needs), gives: declared(work.op.gives),
      itemKey: host.loop.keys.name(of: work.itemKey),
      collectKey: work.collectKey.map { host.loop.keys.name(of: $0) }, keys: keys, data: data,
      limit: 1, stopsAtFailure: !work.allowFailure,
      endingError: work.endingError.map { WireError($0, from: host) }, lineage: work.lineage,
      spans: work.spans)
  }

  /// A share whose items all end with an error.
  init(_ host: ScriptHost, _ work: ItemWork, _ shared: WorkerFunction, refusing error: FlowError) {
    self.host = host
    pool = host.workers
    self.work = work
    self.shared = shared
    refusal = error
    plan = nil
    number = 0
    remaining = work.count
  }

  deinit {
    for share in shares { share.runner = nil }
    guard host.openPools.contains(where: { $0 === pool }) else { return }
    for share in shares {
      if let worker = share.worker {
        if share.count > 0 {
          pool.stop(share.number, .cancelled(), of: worker, order: share.number)
        }
        pool.send(.close(id: share.number), to: worker)
      }
      pool.disconnect(share.number)
      pool.end(share.number)
    }
  }

  // MARK: For the group

  var queues: Bool { true }

  func attach(to group: any ItemGroup) {
    self.group = group as? any ExecutedItemGroup
    guard refusal == nil else { return }
    let count = min(pool.size, work.maxConcurrent, work.count)
    for place in 0..<count {
      let limit = work.maxConcurrent / count + (place < work.maxConcurrent % count ? 1 : 0)
      shares.append(Share(pool.makeNumber(), limit: min(limit, work.count), self))
    }
    for share in shares {
      pool.connect(self, share.number)
      pool.submit(share, share.number, group: number)
    }
  }

  func detach() { group = nil }

  var capacity: Int {
    if refusal != nil { return work.count }
    return neediest?.room ?? 0
  }

  /// The share with the most room, if any has room.
  private var neediest: (share: Share, room: Int)? {
    var best: (share: Share, room: Int)?
    for share in shares where share.worker != nil {
      let room = room(of: share)
      if room > (best?.room ?? 0) { best = (share, room) }
    }
    return best
  }

  private func room(of share: Share) -> Int {
    let waiting = waitingLimit(share)
    let room = share.limit + waiting - share.count
    // A few fitting items aren't worth a message while enough are waiting.
    return share.count >= share.limit + waiting / 2 ? 0 : max(0, room)
  }

  /// The number of items that may wait in a worker; none on a virtual clock, on which an item that sleeps would keep
  /// them from a worker that has room now.
  private func waitingLimit(_ share: Share) -> Int {
    if loop.timeSource.isVirtual { return 0 }
    guard share.itemTime > 0, share.itemTime < Self.longItem, !work.hasRate else { return 0 }
    let most = min(Int(Self.lookahead / share.itemTime), Self.mostWaiting)
    let fair = remaining / (2 * max(1, shares.count))
    return min(most, max(fair, Int(Self.shortestLookahead / share.itemTime)))
  }

  func start(_ batch: ItemBatch) {
    // Before the room shrinks, because fewer items remain.
    let neediest = neediest
    remaining = max(0, remaining - (batch.attempt == 1 ? batch.count : 0))
    if let refusal {
      for index in batch.first..<batch.first + batch.count {
        end(index, batch.attempt, refusal)
      }
      return
    }
    guard let group, let (share, _) = neediest, let worker = share.worker else { return }
    var first = batch.first
    var wired = WireBatch()
    func send() {
      let count = wired.values.count
      if count > 0 {
        share.count += count
        let part = ItemBatch(first: first, count: count, attempt: batch.attempt)
        share.given.append(part)
        let labels = group.labels(of: part)
        pool.send(.items(id: share.number, first: first, wired, labels: labels), to: worker)
      }
      wired = WireBatch()
    }
    wired.values.reserveCapacity(batch.count)
    for (place, item) in group.items(of: batch).enumerated() {
      if let plain = WireValue(plain: item) {
        wired.values.append(plain)
        continue
      }
      do throws(WireProblem) {
        let item = try host.wire(item, &wired)
        wired.values.append(item)
      } catch {
        let index = batch.first + place
        send()
        first = index + 1
        end(index, batch.attempt, error.failure("item #\(index + 1)"))
      }
    }
    send()
  }

  private func end(_ index: Int, _ attempt: UInt32, _ error: FlowError) {
    group?.itemEnded(index, attempt: attempt, output: .null, error: error, time: nil)
  }

  func cancel(_ error: FlowError) {
    cancellation = error
    for share in shares {
      guard let worker = share.worker, share.count > 0 else { continue }
      pool.stop(share.number, error, of: worker, order: share.number)
    }
  }

  // MARK: From the pool

  private func begin(_ share: Share, in worker: Int) -> WorkerOrder? {
    guard cancellation == nil, let plan else { return nil }
    share.worker = worker
    // After the order for it has been sent.
    loop.enqueue { [weak self] in self?.group?.capacityChanged() }
    return .open(id: share.number, plan.with(limit: share.limit))
  }

  func isHeld(_ limit: Limit) -> Bool { work.isHeld(limit) }

  func handle(_ events: WorkerReport.GroupEvents, worker: Int) {
    for (_, path) in events.folders {
      host.service { TemporaryFolders() }.keep(path, for: work.run)
    }
    guard let share = shares.first(where: { $0.number == events.id }), let group else { return }
    for (index, path) in events.folders { group.itemMade(folder: path, Int(index)) }
    var ends = ItemEnds()
    ends.indices = events.indices
    ends.outputs.reserveCapacity(ends.count)
    for wired in events.outputs.values {
      if let plain = FlowValue(plain: wired) {
        ends.outputs.append(plain)
        continue
      }
      do {
        ends.outputs.append(try host.value(wired, in: events.outputs))
      } catch {
        ends.failures.append((ends.outputs.count, FlowError(.error, ByteString(describing: error))))
        ends.outputs.append(.null)
      }
    }
    ends.failures.append(contentsOf: events.failures.map { ($0.place, $0.error.error(on: host)) })
    ends.failures.sort { $0.place < $1.place }
    share.count -= ends.count
    if share.count <= 0 {
      share.count = 0
      share.given.removeAll(keepingCapacity: true)
    }
    if !ends.indices.isEmpty {
      let time = max(1, events.busy / Int64(ends.count))
      // The mean of many items is more reliable than the previous estimate; a few may be
      // exceptions.
      let isKnown = share.itemTime > 0 && ends.count < Self.enoughItems
      share.itemTime = isKnown ? (share.itemTime * 3 + time) / 4 : time
    }
    group.itemsExecuted(events.slice, lane: UInt8(truncatingIfNeeded: worker + 1), ends)
    group.capacityChanged()
  }

  /// The worker of a share is gone: its items are passed to others, unless it was being stopped.
  private func lost(_ share: Share, _ error: FlowError, isReplaced: Bool) {
    let given = share.given
    share.given = []
    share.count = 0
    share.worker = nil
    for batch in given {
      for index in batch.first..<batch.first + batch.count {
        // The group already knows the ended ones.
        if let cancellation {
          end(index, batch.attempt, cancellation)
        } else {
          group?.itemLost(index, attempt: batch.attempt)
        }
      }
    }
    guard cancellation == nil, let group else { return }
    if isReplaced {
      pool.submit(share, share.number, group: number)
    } else if shares.allSatisfy({ $0 === share || !$0.isOpen }) {
      // No share can execute the rest.
      refusal = error
      group.capacityChanged()
    }
    share.isOpen = isReplaced
  }
}

extension WorkerGroup {
  /// The group for a worker that executes this many at a time.
  fileprivate func with(limit: Int) -> WorkerGroup {
    WorkerGroup(
      code: code, arguments: arguments, name: name, needs: needs, gives: gives, itemKey: itemKey,
      collectKey: collectKey, keys: keys, data: data, limit: limit, stopsAtFailure: stopsAtFailure,
      endingError: endingError, lineage: lineage, spans: spans)
  }
}
