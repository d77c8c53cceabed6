/// Executes items on the loop of their group, each in a strand with a bucket of its own.
final class LoopItemRunner: ItemRunner {
  private let op: Op
  private let itemKey: Key
  private let parent: DataBucket
  private let run: Run
  private let scope: UInt32
  /// Members that execute; each knows its place by `memberSlot`.
  @exclusivity(unchecked) private(set) var members: [Strand] = []
  @exclusivity(unchecked) private var idle: [Strand] = []

  /// One at a time, so that none has begun when the one before has failed at once.
  let capacity = 1

  init(_ op: Op, itemKey: Key, parent: DataBucket, run: Run, scope: UInt32) {
    self.op = op
    self.itemKey = itemKey
    self.parent = parent
    self.run = run
    self.scope = scope
  }

  func start(_ batch: ItemBatch, for group: any ItemGroup) {
    guard let group = group as? GroupExecution else { return }
    start(batch.first, attempt: batch.attempt, for: group)
  }

  /// As above, without a detour by existentials.
  func start(_ index: Int, attempt: UInt32, for group: GroupExecution) {
    let member: Strand
    if let free = idle.popLast() {
      member = free
    } else {
      let bucket = DataBucket(keys: parent.keys, parent: parent)
      member = Strand(run: run, bucket: bucket, group: group)
    }
    member.bucket.set(itemKey, group.item(at: index))
    member.memberSlot = members.count
    member.itemAttempt = attempt
    members.append(member)
    member.prepare(
      op, scope: scope, position: UInt32(truncatingIfNeeded: index + 1), index: index + 1)
    run.loop.push(member)
  }

  /// Takes a member back that has ended.
  func remove(_ member: Strand) {
    let last = members.removeLast()
    if last !== member {
      last.memberSlot = member.memberSlot
      members[member.memberSlot] = last
    }
    member.resetBucket()
    idle.append(member)
  }

  func cancel(_ error: FlowError) {
    for member in members.sorted(by: { $0.index < $1.index }) { member.cancel(error) }
  }
}
