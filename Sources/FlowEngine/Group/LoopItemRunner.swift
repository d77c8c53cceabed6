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

  /// Members that execute, each at its `memberSlot`, and behind them those that are free.
  @exclusivity(unchecked) private var strands: ContiguousArray<Strand> = []
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
  var members: ContiguousArray<Strand>.SubSequence { strands[..<count] }

  /// Prepares a member for the next item; nil when there is none.
  @inline(__always)
  func startNext() -> Strand? {
    let index = next
    guard index < source.count else { return nil }
    next = index &+ 1
    if count == strands.count { addStrand() }
    let member = strands[count]
    member.memberSlot = count
    count &+= 1
    member.beginItem(work.itemKey, source.item(at: index))
    member.prepare(
      work.op, policy: policy, scope: scope,
      position: UInt32(truncatingIfNeeded: index &+ 1), index: index &+ 1)
    return member
  }

  @inline(never)
  private func addStrand() {
    let bucket = DataBucket(keys: work.data.keys, parent: work.data)
    strands.append(Strand(run: work.run, bucket: bucket, group: group))
  }

  /// Takes a member back that has ended.
  @inline(__always)
  func remove(_ member: Strand) {
    count &-= 1
    let slot = member.memberSlot
    if slot != count {
      strands.swapAt(slot, count)
      strands[slot].memberSlot = slot
      strands[count].memberSlot = count
    }
    member.resetBucket()
  }

  /// Asks all members to stop, in the order of their items.
  func cancel(_ error: FlowError) {
    for member in members.sorted(by: { $0.index < $1.index }) { member.cancel(error) }
  }
}
