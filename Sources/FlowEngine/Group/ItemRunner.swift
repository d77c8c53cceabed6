/// Where the items of a group come from; asked for an item when it is about to start.
public protocol ItemSource: AnyObject {
  /// The number of items; read once, when the group begins.
  var count: Int { get }
  /// The item at a 0-based index.
  func item(at index: Int) -> Value
}

/// The elements of a list value.
final class ListSource: ItemSource {
  let list: any OpaqueValue
  let count: Int
  /// Whether the list as a whole is secret, and so each of its elements.
  private let isSecret: Bool

  init?(_ value: Value, isSecret: Bool) {
    guard case .opaque(let list) = value, let count = list.listCount(), count >= 0 else {
      return nil
    }
    self.list = list
    self.count = count
    self.isSecret = isSecret
  }

  func item(at index: Int) -> Value {
    isSecret ? .secret(list.element(at: index)) : list.element(at: index)
  }

  /// Several of them.
  func items(_ range: Range<Int>) -> ContiguousArray<Value> {
    let items = list.elements(range)
    return isSecret ? ContiguousArray(items.map { .secret($0) }) : items
  }
}

/// What a group wants done with each of its items, for whoever makes its runner.
public struct ItemWork {
  /// The op to execute for each item.
  public let op: Op
  /// The run that the group is part of.
  public let run: Run
  /// What the items read through to; only the flow itself writes to it.
  public let data: DataBucket
  /// The number of items.
  public let count: Int
  /// The most items that may execute at the same time.
  public let maxConcurrent: Int
  /// The key under which an item's bucket holds the item.
  public let itemKey: Key
  /// The key whose value is the output of an item; nil when nothing is collected.
  public let collectKey: Key?
  /// Whether an item may succeed without a value under that key.
  public let isOutputOptional: Bool
  /// Whether the group goes on when an item fails.
  public let allowFailure: Bool
  /// The strand whose step the group is.
  let parent: Strand
  /// What the flow is ending with, of a group that is one of its final steps; nil after success. Looked
  /// up through all groups around.
  public var endingError: FlowError? { parent.endingErrorAround }
  /// The policy at the group's place: the op's own, unless another was given there.
  let policy: OpPolicy?
  /// Whether an item is tried again or has a time limit: who makes a runner sees to both.
  public var hasPolicy: Bool { policy != nil }
}

/// Items that a runner is to execute: `count` of them, from the 0-based index `first` on.
public struct ItemBatch: Sendable {
  /// The 0-based index of the first item.
  public let first: Int
  /// How many items there are.
  public let count: Int
  /// Tells this execution of the items from an earlier one that was lost; 1-based.
  public let attempt: UInt32

  /// A batch, for runners that keep a record of theirs.
  package init(first: Int, count: Int, attempt: UInt32) {
    self.first = first
    self.count = count
    self.attempt = attempt
  }
}

/// Executes items of a group elsewhere than on its loop: in workers, on other machines.
///
/// It does all that belongs to an execution, the checks of what the op declares included; the group
/// decides what is started when, logs what it is told, and collects.
///
/// `OpBody.itemRunner(for:)` or `EventLoop.makeItemRunner` makes one for each group that begins.
/// All calls come on the loop's thread.
public protocol ItemRunner: AnyObject {
  /// Says, once and before anything else, which group it works for.
  func attach(to group: any ItemGroup)
  /// How many more items it takes now; call `ItemGroup.capacityChanged` when it has grown.
  var capacity: Int { get }
  /// Whether items may wait with it before they begin, so that it sees to `ItemWork.maxConcurrent`
  /// itself; false, the default, leaves that to the group.
  var queues: Bool { get }
  /// Executes a batch of at most `capacity` items and tells the group how each ended.
  func start(_ batch: ItemBatch)
  /// Stops what executes and drops what is queued because of `error`; each item still ends.
  func cancel(_ error: FlowError)
  /// Says that the group has ended, perhaps more than once: nothing it is told counts any more.
  func detach()
}

extension ItemRunner {
  public var queues: Bool { false }
  public func detach() {}
}

/// How items have ended, for a group that is told of many at once.
package struct ItemEnds {
  /// The 0-based indices of the items.
  package var indices: ContiguousArray<Int32> = []
  /// What is collected of each; `.null` of those that have failed.
  package var outputs: ContiguousArray<Value> = []
  /// The errors of those that have failed, each with its place in the lists, in order.
  package var failures: [(place: Int, error: FlowError)] = []

  package init() {}

  package var count: Int { indices.count }
}

/// What a runner tells of its items, on the loop's thread, in any order, also from within `start`.
///
/// Only the attempt that an item was handed out with last counts, and only until it has ended:
/// whatever comes twice or too late is ignored. A group holds its runner until it has ended, so that
/// a runner should hold its group weakly.
public protocol ItemGroup: AnyObject {
  /// The item at a 0-based index.
  func item(at index: Int) -> Value
  /// The item has begun to execute, at `time` on the loop's clock; nil stands for now.
  func itemStarted(_ index: Int, attempt: UInt32, time: Int64?)
  /// The item's op has logged a line.
  func itemLogged(_ index: Int, attempt: UInt32, _ text: ByteString)
  /// The item has ended, with `error` or with what is collected of it, at `time`; nil is now.
  func itemEnded(_ index: Int, attempt: UInt32, output: Value, error: FlowError?, time: Int64?)
  /// The item was lost with what executed it, and has to be started again.
  func itemLost(_ index: Int, attempt: UInt32)
  /// The runner takes more items than when it was last asked.
  func capacityChanged()
}

/// A group, for a runner whose items are executed by `ItemExecutor`s.
package protocol ExecutedItemGroup: ItemGroup {
  /// The items of a batch.
  func items(of batch: ItemBatch) -> ContiguousArray<Value>
  /// Takes what has happened to items, and which have ended: their starts, lines and finishes stand in
  /// `slice`. To be called for the attempts that count only; `lane` is the worker, from 1 on.
  func itemsExecuted(_ slice: LogSlice, lane: UInt8, _ ends: ItemEnds)
}
