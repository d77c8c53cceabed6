/// The source of a group's items; asked for an item when it is about to start.
package protocol ItemSource: AnyObject {
  /// The number of items; read once, when the group begins.
  var count: Int { get }
  /// The item at a 0-based index.
  func item(at index: Int) -> FlowValue
}

/// The elements of a list value.
final class ListSource: ItemSource {
  let list: any OpaqueValue
  let count: Int
  /// Whether the list as a whole is secret, which makes each of its elements secret.
  private let isSecret: Bool

  init?(_ value: FlowValue, isSecret: Bool) {
    guard case .opaque(let list) = value, let count = list.listCount(), count >= 0 else {
      return nil
    }
    self.list = list
    self.count = count
    self.isSecret = isSecret
  }

  func item(at index: Int) -> FlowValue {
    isSecret ? .secret(list.element(at: index)) : list.element(at: index)
  }

  /// The items of a range.
  func items(_ range: Range<Int>) -> ContiguousArray<FlowValue> {
    let items = list.elements(range)
    return isSecret ? ContiguousArray(items.map { .secret($0) }) : items
  }
}

/// The work that a group needs done for each of its items: the input for making its runner.
package struct ItemWork {
  /// The op to execute for each item.
  package let op: Op
  /// The run that the group is part of.
  package let run: Run
  /// The data that items read through to; only the flow itself writes to it.
  package let data: DataBucket
  /// The number of items.
  package let count: Int
  /// The most items that may execute at the same time.
  package let maxConcurrent: Int
  /// The key under which an item's bucket holds the item.
  package let itemKey: DataKey
  /// The key whose value is the output of an item; nil when nothing is collected.
  package let collectKey: DataKey?
  /// Whether an item may succeed without a value under that key.
  package let isOutputOptional: Bool
  /// Whether the group continues when an item fails.
  package let allowFailure: Bool
  /// The execution whose step the group is.
  let parent: Execution
  /// The error that the flow is ending with, when the group is one of its final steps; nil after
  /// success. Looked up through all enclosing groups.
  package var endingError: FlowError? { parent.endingErrorAround }
  /// The policy at the group's place: the op's own, unless that place has another.
  let policy: OpPolicy?
  /// The place of the group in the log.
  let scope: UInt32
  let position: UInt32
  /// The scope of its items.
  let itemScope: UInt32
  /// Whether the enclosing execution holds a limit.
  package func isHeld(_ limit: Limit) -> Bool { parent.isHeldAround(limit) }
  /// Whether an item is retried, has a time limit, or needs shared limits. A runner has to handle these.
  package var hasPolicy: Bool { policy != nil }
  /// Whether the group limits how many items start in a time: it then hands items out when they may
  /// start, so a runner must not let them wait.
  package let hasRate: Bool
}

/// Items that a runner is to execute: `count` of them, from the 0-based index `first` on.
package struct ItemBatch: Sendable {
  /// The 0-based index of the first item.
  package let first: Int
  /// How many items there are.
  package let count: Int
  /// The 1-based number of this attempt at the items. It grows when an earlier execution of them
  /// was lost.
  package let attempt: UInt32

  /// Makes a batch, for runners that keep a record of their batches.
  package init(first: Int, count: Int, attempt: UInt32) {
    self.first = first
    self.count = count
    self.attempt = attempt
  }
}

/// A body that chooses the runner for groups of its op.
package protocol ItemRunnerProvider: OpBody {
  /// Makes the runner for a group; nil leaves the items to the loop.
  func itemRunner(for work: ItemWork) -> (any ItemRunner)?
}

/// Executes items of a group elsewhere than on its loop: in workers or on other nodes.
///
/// It does everything that belongs to an execution, including the checks of the op's declarations.
/// The group decides when each item starts, logs the runner's notifications, and collects outputs.
///
/// `ItemRunnerProvider.itemRunner(for:)` or `FlowEventLoop.makeItemRunner` makes one for each group
/// that starts. All its methods are called on the loop's thread.
package protocol ItemRunner: AnyObject {
  /// Sets the group that it works for; called once and before any other method.
  func attach(to group: any ItemGroup)
  /// How many more items it takes now; when that has grown, it calls `ItemGroup.capacityChanged`.
  var capacity: Int { get }
  /// Whether it queues items and therefore enforces `ItemWork.maxConcurrent` itself; false, the
  /// default, leaves that to the group.
  var queues: Bool { get }
  /// Executes a batch of at most `capacity` items and notifies the group of each end.
  func start(_ batch: ItemBatch)
  /// Stops running items and drops queued ones because of `error`; each item still ends.
  func cancel(_ error: FlowError)
  /// Notifies it, perhaps more than once, that the group has ended: the group ignores later
  /// notifications.
  func detach()
}

extension ItemRunner {
  package var queues: Bool { false }
  package func detach() {}
}

/// How items have ended, for a group that is notified of many ends at once.
package struct ItemEnds {
  /// The 0-based indices of the items.
  package var indices: ContiguousArray<Int32> = []
  /// The collected output of each item; `.null` for an item that has failed.
  package var outputs: ContiguousArray<FlowValue> = []
  /// The errors of failed items, each with its place in the lists, in order.
  package var failures: [(place: Int, error: FlowError)] = []

  package init() {}

  package var count: Int { indices.count }
}

/// Receives a runner's notifications about items, on the loop's thread, in any order, also from
/// within `start`.
///
/// Only the latest attempt at an item counts, and only until the item has ended: repeated or late
/// notifications are ignored. A group retains its runner until the group has ended, so a runner
/// should hold its group weakly.
package protocol ItemGroup: AnyObject {
  /// The item at a 0-based index.
  func item(at index: Int) -> FlowValue
  /// The item has started, at `time` on the loop's clock; nil means now.
  func itemStarted(_ index: Int, attempt: UInt32, time: Int64?)
  /// The item's op has logged a line.
  func itemLogged(_ index: Int, attempt: UInt32, _ text: ByteString)
  /// The item has ended, with `error` or with its collected output, at `time`; nil means now.
  func itemEnded(_ index: Int, attempt: UInt32, output: FlowValue, error: FlowError?, time: Int64?)
  /// The item was lost together with its worker or process, and has to be started again.
  func itemLost(_ index: Int, attempt: UInt32)
  /// The runner takes more items than when `capacity` was last read.
  func capacityChanged()
}

/// A group, for a runner whose items are executed by `ItemExecutor`s.
package protocol ExecutedItemGroup: ItemGroup {
  /// The items of a batch.
  func items(of batch: ItemBatch) -> ContiguousArray<FlowValue>
  /// The labels of a batch, empty for items without one; an empty list when no item has one.
  func labels(of batch: ItemBatch) -> ContiguousArray<ByteString>
  /// An item that hasn't ended has made a temporary folder.
  func itemMade(folder path: ByteString, _ index: Int)
  /// Takes events of items and the list of ended items: `slice` contains the starts, lines and
  /// finishes. Must be called only for attempts that count; `lane` is the worker, from 1 on.
  func itemsExecuted(_ slice: LogSlice, lane: UInt8, _ ends: ItemEnds)
}

/// Executes items on the loop of their group, each in an execution with a bucket of its own. A
/// group uses it when there is no other runner.
///
/// A group calls it by its concrete type, which saves a protocol call per item; its executions log,
/// stop and stall by themselves.
final class LoopItemRunner {
  private let work: ItemWork
  private let policy: OpPolicy?
  private let source: ListSource?
  /// Where the items come from, without a list.
  private let feed: ItemFeed?
  /// The items of an iterator that execute or have failed, for the list of failures; nil if they aren't needed.
  @exclusivity(unchecked) private var items: [Int: FlowValue]?
  private let listCount: Int
  private let scope: UInt32
  // Safe: the group holds its runner, and releases it with its last member.
  private unowned(unsafe) let group: GroupExecution

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private var pool = MemberPool()
  @exclusivity(unchecked) private var next = 0

  init(
    _ work: ItemWork, policy: OpPolicy?, _ source: ListSource, scope: UInt32,
    group: GroupExecution
  ) {
    self.work = work
    self.policy = policy
    self.source = source
    feed = nil
    listCount = source.count
    self.scope = scope
    self.group = group
  }

  /// Makes a runner for the items of an iterator.
  init(
    _ work: ItemWork, policy: OpPolicy?, _ feed: ItemFeed, scope: UInt32, keepsItems: Bool,
    group: GroupExecution
  ) {
    self.work = work
    self.policy = policy
    source = nil
    self.feed = feed
    items = keepsItems ? [:] : nil
    listCount = 0
    self.scope = scope
    self.group = group
  }

  /// How many members haven't ended.
  var count: Int { pool.count }

  /// Whether items remain to start now.
  var hasNext: Bool { next < listCount || feed?.hasNext == true }

  /// Starts no more items.
  func close() { next = max(next, listCount) }

  /// The item of an iterator at a 0-based index that executes or has failed.
  func item(at index: Int) -> FlowValue? { items?[index] }

  /// Members that execute, in no order.
  var members: [Execution] { pool.members }

  /// Prepares a member for the next item; nil when there is none.
  @inline(__always)
  func startNext() -> Unmanaged<Execution>? {
    let index = next
    guard index < listCount, let source else { return feed == nil ? nil : startFed() }
    next = index &+ 1
    return unretained(group) { group in
      pool.start(
        source.item(at: index), at: index, of: group, op: work.op, policy: policy,
        key: work.itemKey, scope: scope
      ) { (work.run, work.data) }
    }
  }

  @inline(never)
  private func startFed() -> Unmanaged<Execution>? {
    guard let item = feed?.next() else { return nil }
    return unretained(group) { group in
      // The iterator, and then the label, are code that may have stopped the group.
      guard group.stop == nil else { return nil }
      let index = next
      next += 1
      items?[index] = item
      group.setLabel(of: item, at: index, in: scope)
      guard group.stop == nil else { return nil }
      return pool.start(
        item, at: index, of: group, op: work.op, policy: policy, key: work.itemKey, scope: scope
      ) { (work.run, work.data) }
    }
  }

  /// Takes back a member that has ended.
  @inline(__always)
  func remove(_ member: Execution) {
    pool.remove(member, keeps: next < listCount || feed != nil)
  }

  /// Forgets the item of an iterator, which has succeeded.
  func forget(_ index: Int) { items?[index] = nil }

  /// Stops all members, in the order of their items.
  func cancel(_ error: FlowError) { pool.cancel(error) }
}

/// A failed item of a group: the engine's own record of it in `failures`.
package final class ItemFailure: OpaqueValue {
  /// The 0-based index of the item.
  package let index: Int
  /// The item that failed.
  package let input: FlowValue
  /// Why it failed.
  package let error: FlowError

  /// Makes the record of one failed item; `index` counts from 0.
  package init(index: Int, input: FlowValue, error: FlowError) {
    self.index = index
    self.input = input
    self.error = error
  }

  package var typeName: ByteString { "table" }

  package func logText(limit: Int) -> ByteString {
    let shown: ByteString =
      if case .opaque(let value) = input { value.logText(limit: limit) } else { input.logText }
    let text: ByteString =
      "{error = \(error.text), index = \(index + 1), input = \(shown)}"
    return text.truncated(to: limit)
  }

  package func matches(typeName: ByteString) -> Bool { typeName == "table" }

  package func listCount() -> Int? { nil }

  package func element(at index: Int) -> FlowValue { .null }

  package func plainCopy() -> PlainValue? {
    guard let input = input.plainCopy() else { return nil }
    let fields: [PlainValue.Entry] = [
      .init(key: .bytes("index"), value: .integer(Int64(index) + 1)),
      .init(key: .bytes("input"), value: input.root.shifted(by: 1)),
      .init(key: .bytes("error"), value: .bytes(error.message)),
    ]
    let table = PlainValue.Table(entries: fields)
    return PlainValue(.table(0), tables: [table] + input.tables.map { $0.shifted(by: 1) })
  }
}
