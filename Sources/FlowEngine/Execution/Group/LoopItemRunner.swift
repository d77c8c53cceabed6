/// Executes items on the loop of their group, each in an execution with a bucket of its own. A
/// group uses it when there is no other runner.
///
/// A group calls it by its concrete type, which saves a protocol call per item; its executions log,
/// stop and stall by themselves.
final class LoopItemRunner {
  private let work: ItemWork
  private let policy: OpPolicy?
  private let source: ListSource
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
    self.scope = scope
    self.group = group
  }

  /// How many members haven't ended.
  var count: Int { pool.count }

  /// Whether items remain to start.
  var hasNext: Bool { next < source.count }

  /// Members that execute, in no order.
  var members: [Execution] { pool.members }

  /// Prepares a member for the next item; nil when there is none.
  @inline(__always)
  func startNext() -> Unmanaged<Execution>? {
    let index = next
    guard index < source.count else { return nil }
    next = index &+ 1
    return unretained(group) { group in
      pool.start(
        source.item(at: index), at: index, of: group, op: work.op, policy: policy,
        key: work.itemKey, scope: scope
      ) { (work.run, work.data) }
    }
  }

  /// Takes back a member that has ended.
  @inline(__always)
  func remove(_ member: Execution) {
    pool.remove(member, keeps: next < source.count)
  }

  /// Stops all members, in the order of their items.
  func cancel(_ error: FlowError) { pool.cancel(error) }
}
