/// The strands of a group's items, each with a bucket of its own; those that have ended are used again.
struct MemberPool {
  /// All members, each at its `memberSlot`; nil where one has been let go.
  private var strands: ContiguousArray<Strand?> = []
  /// Members that don't execute, for the next items. (Each is among all of them, which retain it.)
  private var idle: ContiguousArray<Unmanaged<Strand>> = []
  /// The one that was let go last, which may not have returned yet.
  private var leaving: Strand?
  /// How many members execute.
  private(set) var count = 0

  /// Members that execute, in no order.
  var members: [Strand] { strands.compactMap { $0?.isExecuting == true ? $0 : nil } }

  /// Prepares a member for an item; `index` counts from 0, and `parent` is asked for the run and the
  /// bucket that a new member reads through to.
  @inline(__always)
  mutating func start(
    _ item: Value, at index: Int, of group: MemberGroup, op: Op, policy: OpPolicy?, key: Key,
    scope: UInt32, parent: () -> (run: Run, data: DataBucket)
  ) -> Unmanaged<Strand> {
    let member: Unmanaged<Strand>
    if let used = idle.popLast() {
      member = used
    } else {
      let parent = parent()
      member = makeStrand(group, parent.run, parent.data)
    }
    count &+= 1
    member._withUnsafeGuaranteedRef {
      $0.isExecuting = true
      $0.beginItem(key, item)
      $0.prepare(
        op, policy: policy, scope: scope,
        position: UInt32(truncatingIfNeeded: index &+ 1), index: index &+ 1)
    }
    return member
  }

  @inline(never)
  private mutating func makeStrand(
    _ group: MemberGroup, _ run: Run, _ data: DataBucket
  ) -> Unmanaged<Strand> {
    let bucket = DataBucket(keys: data.keys, parent: data)
    let member = Strand(run: run, bucket: bucket, group: group)
    member.memberSlot = strands.count
    strands.append(member)
    return .passUnretained(member)
  }

  /// Takes a member back that has ended, and keeps it if there are items to come.
  @inline(__always)
  mutating func remove(_ member: Strand, keeps: Bool) {
    member.isExecuting = false
    count &-= 1
    if keeps {
      member.resetBucket()
      idle.append(.passUnretained(member))
    } else {
      // Soon, as its memory is at hand: later it would have to be fetched.
      leaving = strands[member.memberSlot].take()
    }
  }

  /// Lets go of members that don't execute.
  mutating func removeIdle() {
    for member in idle {
      strands[member._withUnsafeGuaranteedRef { $0.memberSlot }] = nil
    }
    idle = []
    leaving = nil
  }

  /// Lets go of all members, and hands them over.
  mutating func removeAll() -> [Strand] {
    defer {
      strands = []
      idle = []
      leaving = nil
      count = 0
    }
    return strands.compactMap { $0 }
  }

  /// Asks all members to stop, in the order of their items.
  func cancel(_ error: FlowError) {
    for member in members.sorted(by: { $0.index < $1.index }) { member.cancel(error) }
  }
}
