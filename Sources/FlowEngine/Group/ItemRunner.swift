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

  init?(_ value: Value) {
    guard case .opaque(let list) = value, let count = list.listCount() else { return nil }
    self.list = list
    self.count = count
  }

  func item(at index: Int) -> Value { list.element(at: index) }
}

/// Items that a runner is to execute: `count` of them, from the 0-based index `first` on.
public struct ItemBatch: Sendable {
  public let first: Int
  public let count: Int
  /// Tells this execution of the items from an earlier one that was lost.
  public let attempt: UInt32
}

/// Executes items of a group: on the loop, in workers, on other machines. On the loop's thread.
public protocol ItemRunner: AnyObject {
  /// How many items it takes now.
  var capacity: Int { get }
  /// Executes a batch of at most `capacity` items and tells the group how each ended.
  func start(_ batch: ItemBatch, for group: any ItemGroup)
  /// Stops what executes because of `error`; each item still ends.
  func cancel(_ error: FlowError)
}

/// What a runner tells of its items, on the loop's thread. Only the current attempt counts.
public protocol ItemGroup: AnyObject {
  func item(at index: Int) -> Value
  /// The item has ended, with `error` or with what is collected of it.
  func itemEnded(_ index: Int, attempt: UInt32, output: Value, error: FlowError?)
  /// The item was lost with what executed it, and has to be started again.
  func itemLost(_ index: Int, attempt: UInt32)
}
