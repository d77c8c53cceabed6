/// Several executions that an execution waits for: the items of a list, or different ops that run
/// at the same time.
class MemberGroup: Work {
  // Safe: the parent holds this group until it has ended.
  private let unretainedParent: Unmanaged<Execution>
  /// The execution whose step this is.
  final var parent: Execution { unretainedParent.takeUnretainedValue() }
  final let loop: FlowEventLoop

  // Unchecked exclusivity: see HotPath.swift.

  /// Why no further member starts.
  @exclusivity(unchecked) final var stop: FlowError?
  /// Why running members have to be stopped; `stopMembers` does it.
  @exclusivity(unchecked) final var stopReason: FlowError?
  /// Whether `proceed` is running or scheduled: until it ends, members only set a flag.
  @exclusivity(unchecked) final var isScheduled = true

  init(parent: Execution) {
    unretainedParent = .passUnretained(parent)
    loop = parent.loop
    super.init(scheduler: parent.scheduler)
  }

  /// The limits that enclose its members: when they time out, and whether stops from outside reach
  /// them.
  final var surroundings: (deadline: Int64, isShielded: Bool) {
    @inline(__always) get {
      unretainedParent.lend { $0.surroundings }
    }
  }

  /// Whether its run has secrets.
  final var hasSecrets: Bool {
    @inline(__always) get {
      unretainedParent.lend {
        unretained($0.run) { unretained($0.log) { $0.hasSecrets } }
      }
    }
  }

  /// The key that must have a value when a member succeeds, if its value is collected.
  var collectKey: DataKey? { nil }
  /// The key whose value has to be among what a kept run knows about a member.
  var keptOutput: DataKey? { nil }
  /// Whether its members are the items of a list.
  var hasItems: Bool { false }
  /// Whether its members have data of their own, over those around them.
  var separatesData: Bool { hasItems }
  /// Whether what its members do is no part of what its parent does: they read and set nothing for it, and nothing of
  /// them is kept.
  var isApart: Bool { false }
  /// Whether values that members set are logged.
  var logsSets: Bool { false }
  /// The executions of the members that execute.
  var members: [Execution] { [] }

  /// The error of a member that succeeded, but whose output is missing.
  func collectError(in bucket: DataBucket) -> FlowError? { nil }
  /// Called before a member sets a key of the data that it shares with others, in a kept run.
  func noteSet(_ key: DataKey, by member: Execution) {}
  /// The keys that others than `member` have set, with the values before.
  func changes(beside member: Execution) -> [DataKey: FlowValue?] { [:] }
  /// Called at the DidFinish of a member that failed; it may still be executing.
  func memberFailed(_ error: FlowError) {}
  /// Called when a member has ended and no longer executes.
  func memberEnded(_ member: Execution, _ error: FlowError?) {}
  /// Lists ops of a member that has succeeded, so that they are undone when the step's flow fails.
  func list(_ ops: ContiguousArray<UndoableOp>) { parent.list(ops) }
  /// Called when a member begins to wait for its next attempt; returns whether the group decides when
  /// the attempt begins, after this many seconds or later.
  func memberPauses(_ member: Execution, for time: Duration) -> Bool { false }
  /// Called when the next attempt at such a member is due; the group continues the member.
  func memberIsDue(_ member: Execution) {}
  /// Called when such a member is stopped instead.
  func memberPauseStopped(_ member: Execution) {}
  /// Called when a member whose op has ended begins to wait until that is kept.
  func memberIsBeingKept(_ member: Execution) {}
  /// Called when a member begins and ends to wait for limits.
  func memberIsQueued(_ isQueued: Bool) {}
  /// The tasks of the code that executes its member; nil for none.
  var tasksAround: OwnedTasks? { nil }
  /// Whether its items need slots of the graph around it.
  var needsSlots: Bool { false }
  /// Lets the results of a group, which is a member, pass to other members as they come; nil if it isn't one of a graph
  /// whose items pass.
  func passItems(from member: Execution) -> PassedOutput? { nil }
  /// Begins a member that is a step of a graph.
  func begin(_ member: Execution) -> Execution.Advance { .ended }
  /// Takes the answer of the condition of such a member.
  func take(_ answer: CallbackCompletion, of member: Execution) {}
  /// Continues such a member.
  func conditionEnded(_ member: Execution) -> Execution.Advance { .ended }
  /// The error of a member that reads a key which isn't for it; nil if it may.
  func refusal(reading key: DataKey, by member: Execution) -> FlowError? { nil }
  /// The error of a member that sets a key which isn't for it; nil if it may.
  func refusal(setting key: DataKey, by member: Execution) -> FlowError? { nil }
  /// Stops all members because of `error`.
  func cancel(_ error: FlowError) {
    if stop == nil { stop = error }
    stopReason = error
    schedule()
  }
  /// Cancels the running members, and drops the waiting ones.
  func cancelMembers(_ error: FlowError) {}
  /// Stops the members that can't end by themselves as stalled; returns whether there were any.
  /// Members on the loop are stopped directly. Those that wait for the other side of a stream are stopped with `onStreams` only.
  func failStalled(onStreams: Bool) -> Bool { false }
  /// Releases everything, for a loop that is shut down.
  func abandon() {}

  // MARK: Starting members

  /// Starts members one after another until none can start.
  ///
  /// - Parameters:
  ///   - canStart: Whether the limit of the group allows another member now.
  ///   - startNext: Prepares the next member, which the group retains; returns nil when there is none.
  /// - Returns: Whether the group has to wait for its members; false when `proceed` is called again, by
  ///   the engine or the loop.
  @inline(__always)
  final func startMembers(
    while canStart: () -> Bool, _ startNext: () -> Unmanaged<Execution>?
  ) -> Bool {
    isScheduled = true
    while true {
      stopMembers()
      // Code that decides whether one can start may stop the group.
      guard stop == nil, canStart(), stop == nil else { break }
      if engine.isTurnOver {
        loop.enqueue(self)
        return false
      }
      guard let member = startNext() else { break }
      let depth = engine.works.count
      // Safe: the group releases the member after it has returned.
      member.lend { $0.proceed() }
      if engine.works.count > depth {
        // The member has pushed work, which comes before the next member.
        engine.works.insert(self, at: depth)
        return false
      }
    }
    isScheduled = false
    return true
  }

  /// Stops members if that was requested.
  @inline(__always)
  final func stopMembers() {
    guard let reason = stopReason else { return }
    stopReason = nil
    cancelMembers(reason)
  }

  /// Continues as a job of its own, because the caller may be in the middle of a body.
  final func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    loop.enqueue(self)
  }

  /// Continues as the engine's next work, for a member that has ended.
  @inline(__always)
  final func continueAsWork() {
    guard !isScheduled else { return }
    isScheduled = true
    engine.push(self)
  }
}

/// The ways of the results of a group in a graph.
struct PassedOutput {
  /// The stream in which they pass to other steps; nil if they don't.
  let stream: ItemStream?
  /// Whether a list of them is needed.
  let isKept: Bool
}
