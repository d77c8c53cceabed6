/// Several strands that a strand waits for: the items of a list, or different ops at the same time.
class MemberGroup: Work {
  // Safe: the parent holds this group until it has ended.
  private let unretainedParent: Unmanaged<Strand>
  /// The strand whose step this is.
  final var parent: Strand { unretainedParent.takeUnretainedValue() }

  init(parent: Strand) {
    unretainedParent = .passUnretained(parent)
    super.init(loop: parent.loop)
  }

  /// What is around its members: when it times out, and whether stops from outside don't reach them.
  final var surroundings: (deadline: Int64, isShielded: Bool) {
    @inline(__always) get {
      unretainedParent._withUnsafeGuaranteedRef { ($0.outerDeadline, $0.isShielded) }
    }
  }

  /// Whether its run has secrets.
  final var hasSecrets: Bool {
    @inline(__always) get {
      unretainedParent._withUnsafeGuaranteedRef {
        unretained($0.run) { unretained($0.log) { $0.hasSecrets } }
      }
    }
  }

  /// The key that has to be there when a member succeeds, if its value is collected.
  var collectKey: Key? { nil }
  /// Whether what members set is logged.
  var logsSets: Bool { false }
  /// The strands of the members that execute.
  var members: [Strand] { [] }

  /// The error of a member that succeeded, but has nothing to collect.
  func collectError(in bucket: DataBucket) -> FlowError? { nil }
  /// Called at the DidFinish of a member that failed; it may still be executing.
  func memberFailed(_ error: FlowError) {}
  /// Called when a member has ended and executes no more.
  func memberEnded(_ member: Strand, _ error: FlowError?) {}
  /// Asks all members to stop because of `error`.
  func cancel(_ error: FlowError) {}
  /// Stops what can't end by itself as stalled; answers whether there was something. Members on the
  /// loop are asked themselves.
  func failStalled() -> Bool { false }
  /// Lets everything go, for a loop that is shut down.
  func abandon() {}
}
