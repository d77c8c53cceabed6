/// Executes items on the loop of their group, each in a strand with a bucket of its own: what a
/// group uses when nobody makes another runner for it.
///
/// A group knows it by its type, which spares each item the detour by the protocol; its strands log,
/// stop and stall by themselves.
final class LoopItemRunner {
  private let work: ItemWork
  private let policy: OpPolicy?
  private let source: ListSource
  private let scope: UInt32
  // Safe: the group holds its runner, and lets it go with its last member.
  private unowned(unsafe) let group: GroupExecution

  // Unchecked exclusivity: the loop's thread alone touches them, and no access lasts into a call
  // of a body.

  /// All members, each at its `memberSlot`; nil where one has been let go.
  @exclusivity(unchecked) private var strands: ContiguousArray<Strand?> = []
  /// Members that don't execute, for the next items.
  @exclusivity(unchecked) private var idle: ContiguousArray<Strand> = []
  /// How many members execute.
  @exclusivity(unchecked) private(set) var count = 0
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

  /// Members that execute, in no order.
  var members: [Strand] { strands.compactMap { $0?.isExecuting == true ? $0 : nil } }

  /// Prepares a member for the next item; nil when there is none.
  @inline(__always)
  func startNext() -> Strand? {
    let index = next
    guard index < source.count else { return nil }
    next = index &+ 1
    let member = idle.popLast() ?? makeStrand()
    member.isExecuting = true
    count &+= 1
    member.beginItem(work.itemKey, source.item(at: index))
    member.prepare(
      work.op, policy: policy, scope: scope,
      position: UInt32(truncatingIfNeeded: index &+ 1), index: index &+ 1)
    return member
  }

  @inline(never)
  private func makeStrand() -> Strand {
    let bucket = DataBucket(keys: work.data.keys, parent: work.data)
    let member = Strand(run: work.run, bucket: bucket, group: group)
    member.memberSlot = strands.count
    strands.append(member)
    return member
  }

  /// Takes a member back that has ended.
  @inline(__always)
  func remove(_ member: Strand) {
    member.isExecuting = false
    count &-= 1
    if next < source.count {
      member.resetBucket()
      idle.append(member)
    } else {
      // There are no more items. Now its memory is at hand: later it would have to be fetched.
      strands[member.memberSlot] = nil
    }
  }

  /// Asks all members to stop, in the order of their items.
  func cancel(_ error: FlowError) {
    for member in members.sorted(by: { $0.index < $1.index }) { member.cancel(error) }
  }
}
