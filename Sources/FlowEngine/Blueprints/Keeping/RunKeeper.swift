/// Keeps what the ops of a run have finished, so that another process can continue the run without executing
/// them again.
///
/// Called on the loop's thread; must not wait. The engine asks it about each op that a kept run executes,
/// except final steps, about the steps of machines that functions perform, and about the items that a group hands
/// out. An op has finished only when its `KeptExecution` says that it is kept.
package protocol RunKeeper: AnyObject {
  /// Decides about an op whose needs are met, before its first attempt.
  func decide(_ work: KeptWork) -> KeepingDecision
  /// All that was executed within a path has been undone by the undo of what encloses it.
  func undone(within path: ByteString)
}

/// An op that is about to be executed, or a step of a machine.
package struct KeptWork {
  /// A group whose items all have the same code.
  package struct CodeOrigin: Equatable {
    let op: ObjectIdentifier
    let run: UInt64
    let scope: UInt32
  }

  /// Its name: `UploadOp`, `order.pay`.
  package var name: ByteString
  /// Its name in log lines: `UploadOp #3`.
  package var shownName: ByteString
  /// The label of its item, if it has one.
  package var label: ByteString?
  /// The names of all that encloses it, and its own.
  package var path: ByteString
  /// The form of its code, which equal code shares, and where the code was written; nil when nothing can be
  /// compared but the name.
  package var code: () throws -> (form: [UInt8], place: ByteString?)?
  /// Where its code comes from, if the code needn't be compared for each item.
  package var codeOrigin: CodeOrigin?
  /// What it is given, by name: declared inputs, the item of a group, the state of a machine.
  package var inputs: [(name: ByteString, value: Value?)]
  /// The keys of the inputs, in their order, as far as these are in `data`.
  package var given: [Key] = []
  /// The data that it reads.
  package var data: DataBucket
  /// See Lineage.swift.
  package var lineage: UInt64
  /// Whether it isn't executed twice unless somebody says so.
  package var isOnce = false
  /// Which results may come from another run.
  package var cache: CachePolicy?
  /// The loop that executes it.
  package var loop: EventLoop
}

/// What a keeper decides about an op.
package enum KeepingDecision {
  /// It is executed; the line says why, if it was known to the keeper.
  case execute(any KeptExecution, line: ByteString?)
  /// It had finished already.
  case finished(KnownEnd)
  /// It fails without being executed.
  case refuse(FlowError)
}

/// What a keeper knows about an op that had finished already.
package struct KnownEnd {
  /// The values that it has set; `.null` removes a key.
  package var writes: [(key: Key, value: Value)]
  /// The result of a step.
  package var result: Value
  /// The keys that it has read without a declaration.
  package var reads: [Key]
  /// What the log says.
  package var line: ByteString
  /// The lineage of its execution; nil for one of another run.
  package var lineage: UInt64?
  /// Called when it has been undone, perhaps together with the ops that it had executed.
  package var undone: (_ withInner: Bool) -> Void

  package init(
    writes: [(key: Key, value: Value)], result: Value, reads: [Key], line: ByteString,
    lineage: UInt64?, undone: @escaping (_ withInner: Bool) -> Void
  ) {
    self.writes = writes
    self.result = result
    self.reads = reads
    self.line = line
    self.lineage = lineage
    self.undone = undone
  }
}

/// How the execution of an op has ended.
package struct KeptEnd {
  /// The error that it has ended with; nil for success.
  package let error: FlowError?
  /// The 1-based number of the last attempt; 0 when there was none.
  package let attempt: Int
  /// The data that the op worked on; nil for an item that was executed elsewhere.
  package let data: DataBucket?
  /// Values that aren't in `data`: the output of an item that was executed elsewhere, the result of a step, which
  /// has no key.
  package let outputs: [(key: Key?, value: Value)]
}

/// The keeping of one execution of an op, over all its attempts.
package protocol KeptExecution: AnyObject {
  /// The lineage of the execution: the same in all attempts and processes; see Lineage.swift.
  var lineage: UInt64 { get }
  /// Whether the execution's start has to be kept before the body is called.
  var keepsStart: Bool { get }
  /// Keeps the start; calls `then` on the loop's thread, perhaps at once, with the reason why it can't.
  func keepStart(then: @escaping (FlowError?) -> Void)
  /// The op reads a key of its data.
  func willRead(_ key: Key, in bucket: DataBucket)
  /// The op sets or removes a key of its data.
  func willSet(_ key: Key)
  /// The op has ended; calls `then` on the loop's thread, perhaps at once, when that is kept, or with the reason
  /// why it can't be.
  func keepEnd(_ end: KeptEnd, then: @escaping (FlowError?) -> Void)
  /// The op had succeeded and has been undone: a process that continues the run executes it again.
  func keepUndone()
}
