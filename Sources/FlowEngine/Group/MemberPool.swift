/// The strands of a group's items, each with a bucket of its own; those that have ended are used again.
struct MemberPool {
  /// All members, each at its `memberSlot`; nil where one has been let go.
  private var strands: ContiguousArray<Strand?> = []
  /// Members that don't execute, for the next items.
  private var idle: ContiguousArray<Strand> = []
  /// How many members execute.
  private(set) var count = 0

  /// Members that execute, in no order.
  var members: [Strand] { strands.compactMap { $0?.isExecuting == true ? $0 : nil } }

  /// Prepares a member for an item; `index` counts from 0.
  @inline(__always)
  mutating func start(
    _ item: Value, at index: Int, of group: MemberGroup, run: Run, data: DataBucket, op: Op,
    policy: OpPolicy?, key: Key, scope: UInt32
  ) -> Strand {
    let member = idle.popLast() ?? makeStrand(group, run, data)
    member.isExecuting = true
    count &+= 1
    member.beginItem(key, item)
    member.prepare(
      op, policy: policy, scope: scope,
      position: UInt32(truncatingIfNeeded: index &+ 1), index: index &+ 1)
    return member
  }

  @inline(never)
  private mutating func makeStrand(_ group: MemberGroup, _ run: Run, _ data: DataBucket) -> Strand {
    let bucket = DataBucket(keys: data.keys, parent: data)
    let member = Strand(run: run, bucket: bucket, group: group)
    member.memberSlot = strands.count
    strands.append(member)
    return member
  }

  /// Takes a member back that has ended, and keeps it if there are items to come.
  @inline(__always)
  mutating func remove(_ member: Strand, keeps: Bool) {
    member.isExecuting = false
    count &-= 1
    if keeps {
      member.resetBucket()
      idle.append(member)
    } else {
      // Now its memory is at hand: later it would have to be fetched.
      strands[member.memberSlot] = nil
    }
  }

  /// Lets go of members that don't execute.
  mutating func removeIdle() {
    for member in idle { strands[member.memberSlot] = nil }
    idle = []
  }

  /// Lets go of all members, and hands them over.
  mutating func removeAll() -> [Strand] {
    defer {
      strands = []
      idle = []
      count = 0
    }
    return strands.compactMap { $0 }
  }

  /// Asks all members to stop, in the order of their items.
  func cancel(_ error: FlowError) {
    for member in members.sorted(by: { $0.index < $1.index }) { member.cancel(error) }
  }
}
