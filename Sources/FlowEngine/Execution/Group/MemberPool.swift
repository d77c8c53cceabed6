/// The executions of a group's items, or of the steps of a graph. Ended executions are used again.
struct MemberPool {
  /// All members, each at its `memberSlot`; nil where one has been released.
  private var executions: ContiguousArray<Execution?> = []
  /// The places where one has been released.
  private var free: ContiguousArray<Int> = []
  /// Members that don't execute, for the next items. (Each is also in `executions`, which retains
  /// it.)
  private var idle: ContiguousArray<Unmanaged<Execution>> = []
  /// The member that was released last, which may not have returned yet.
  private var leaving: Execution?
  /// How many members execute.
  private(set) var count = 0

  /// How many members wait for their next use.
  var idleCount: Int { idle.count }

  /// Members that execute, in no order.
  var members: [Execution] { executions.compactMap { $0?.isExecuting == true ? $0 : nil } }

  /// Prepares a member for an item; `index` counts from 0, and `parent` provides the run and the
  /// bucket that a new member reads through to.
  @inline(__always)
  mutating func start(
    _ item: FlowValue, at index: Int, of group: MemberGroup, op: Op, policy: OpPolicy?,
    key: DataKey,
    scope: UInt32, parent: () -> (run: Run, data: DataBucket)
  ) -> Unmanaged<Execution> {
    let member = takeIdle() ?? addItem(of: group, parent())
    member.lend {
      $0.beginItem(key, item)
      $0.prepare(
        op, policy: policy, scope: scope,
        position: UInt32(truncatingIfNeeded: index &+ 1), index: index &+ 1)
    }
    return member
  }

  /// A member that has waited for its next use, without data of its own.
  @inline(__always)
  mutating func takeIdle() -> Unmanaged<Execution>? {
    guard let member = idle.popLast() else { return nil }
    count &+= 1
    member.lend { $0.isExecuting = true }
    return member
  }

  @inline(never)
  private mutating func addItem(
    of group: MemberGroup, _ parent: (run: Run, data: DataBucket)
  ) -> Unmanaged<Execution> {
    add(Execution(run: parent.run, data: parent.data, hasBucket: false, group: group))
  }

  /// Adds a member, which executes.
  mutating func add(_ member: Execution) -> Unmanaged<Execution> {
    count &+= 1
    member.isExecuting = true
    if let slot = free.popLast() {
      member.memberSlot = slot
      executions[slot] = member
    } else {
      member.memberSlot = executions.count
      executions.append(member)
    }
    return .passUnretained(member)
  }

  /// Takes back a member that has ended, and keeps it if more items follow.
  @inline(__always)
  mutating func remove(_ member: Execution, keeps: Bool) {
    member.isExecuting = false
    count &-= 1
    if keeps {
      member.resetBucket()
      idle.append(.passUnretained(member))
    } else {
      // Released soon, while its memory is in the cache.
      leaving = executions[member.memberSlot].take()
      free.append(member.memberSlot)
    }
  }

  /// Releases members that don't execute.
  mutating func removeIdle() {
    for member in idle {
      let slot = member.lend { $0.memberSlot }
      executions[slot] = nil
      free.append(slot)
    }
    idle = []
    leaving = nil
  }

  /// Releases all members, and returns them.
  mutating func removeAll() -> [Execution] {
    defer {
      executions = []
      free = []
      idle = []
      leaving = nil
      count = 0
    }
    return executions.compactMap { $0 }
  }

  /// Members that execute, in the order of their items or steps.
  var ordered: [Execution] { members.sorted { $0.position < $1.position } }

  /// Stops all members, in their order.
  func cancel(_ error: FlowError) {
    for member in ordered { member.cancel(error) }
  }
}
