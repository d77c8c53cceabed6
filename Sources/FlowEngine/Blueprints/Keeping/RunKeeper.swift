/// Keeps what the ops of a run have finished, so that another process can continue the run without executing
/// them again.
///
/// Called on the loop's thread; must not wait. The engine asks it about each op that a kept run executes,
/// but not about final steps. It also asks about steps of machines that functions perform, and about the items that a
/// group hands out. An op has finished only when its `KeptExecution` says that it is kept.
package protocol RunKeeper: AnyObject {
  /// The id of the run in the store; nil when nothing is kept.
  var runID: ByteString? { get }
  /// Whether this process is being ended, and another one continues: nothing that has finished is undone.
  var isSuspended: Bool { get }
  /// Decides about an op whose needs are met, before its first attempt.
  func decide(_ work: KeptWork) -> KeepingDecision
  /// How many seconds an op, group or flow at a path took in the last run of the script that has finished; nil if that
  /// isn't known.
  func seconds(at path: @autoclosure () -> ByteString) -> Double?
  /// Notes that a rehearsal doesn't know the items of the group at a path: nobody has written the stream that gives them.
  func noteLostItems(of path: ByteString)
}

extension RunKeeper {
  package func seconds(at path: @autoclosure () -> ByteString) -> Double? { nil }
  package func noteLostItems(of path: ByteString) {}
}

/// Keeps that an op has been undone; calls its argument on the loop's thread, perhaps at once, when that is kept, or
/// with the reason why it can't be.
package typealias UndoneKeeping = (_ then: @escaping (FlowError?) -> Void) -> Void

/// Keeps that all of these ops have been undone.
package func undone(all ops: [UndoneKeeping]) -> UndoneKeeping {
  { then in
    var left = ops.count + 1
    var failure: FlowError?
    let end = { (error: FlowError?) in
      failure = failure ?? error
      left -= 1
      if left == 0 { then(failure) }
    }
    for keep in ops { keep(end) }
    end(nil)
  }
}

/// An op that is about to be executed, or a step of a machine. (An object, because a copy of that many fields costs more
/// than most decisions.)
package final class KeptWork {
  /// A group whose items all have the same code.
  package struct CodeOrigin: Equatable {
    let op: ObjectIdentifier
    let run: UInt64
    let scope: UInt32
  }

  /// The name of a read of the names of all data. No data is under it.
  package static let dataNames: ByteString = "ctx.run.data"
  /// The name of a read that can't be compared, of data that the op's own hide.
  package static let hiddenData: ByteString = "ctx.run.data of a name of its own"
  /// The name of a read of data of an op around it, which counts for that one.
  package static let outsideData: ByteString = "data of another op"

  /// Its name: `UploadOp`, `order.pay`.
  package let name: ByteString
  /// Its name among all others: made when it is needed, which isn't the case for most of what has finished already.
  package let names: () -> KeptNames
  /// The form of its code; nil when nothing can be compared but the name.
  package let code: () throws -> CodeForm?
  /// Why its code can't be compared; set by the keeper.
  package var codeProblem: ByteString?
  /// Where its code comes from, if the code needn't be compared for each item.
  package let codeOrigin: CodeOrigin?
  /// Its inputs, by name: declared ones, the item of a group, the state of a machine.
  package let inputs: [(name: ByteString, value: FlowValue?)]
  /// The keys of the inputs, in their order, as far as these are in `data`.
  package let given: [DataKey]
  /// The inputs whose files count by content: the place of each in `inputs`, and the paths.
  package var inputFiles: [(input: Int, paths: [ByteString])] = []
  /// The declared outputs whose files count by content.
  package var outputFiles: [(key: DataKey, type: FlowValueType)] = []
  /// The keys that it has to set, if it isn't executed twice.
  package var requiredOutputs: [ByteString] = []
  /// The lineages of the runs whose messages say what became of it, if it isn't executed twice.
  package var runs: [UInt64] = []
  /// The time limits that don't count while somebody is asked that.
  package var pause: LimitPause?
  /// Whether items pass between it and other ops while it executes: nothing of that is kept, so it executes again.
  package var passesItems = false
  /// Whether it takes items, or a list of them, of a stream whose writer wasn't executed.
  package var lacksItems = false
  /// The streams that it writes for other steps of a graph; nil if it writes none.
  package var streams: KeptStreams?
  /// The values that were read for the keeper's last answer, `later`.
  package var reading: (any KeptReading)?
  /// The key that a group collects of the item: only an end that was kept with its value counts.
  package let output: DataKey?
  /// The data that it reads.
  package let data: DataBucket
  /// See Lineage.swift.
  package let lineage: UInt64
  /// The keeping of the op that executes it, perhaps through flows and groups; nil if none does.
  package let outer: (any KeptExecution)?
  /// Whether it or anything around it has an undo.
  package let isWithinUndo: Bool
  /// Whether it isn't executed twice unless somebody says so.
  package let isOnce: Bool
  /// Which results may come from another run.
  package var cache: CachePolicy?
  /// The value that counts instead of the inputs and of what the op reads.
  package var cacheKey: FlowValue?
  /// The loop that executes it.
  package let loop: FlowEventLoop

  init(
    name: ByteString, names: @escaping () -> KeptNames,
    code: @escaping () throws -> CodeForm?,
    codeOrigin: CodeOrigin? = nil, inputs: [(name: ByteString, value: FlowValue?)],
    given: [DataKey] = [],
    output: DataKey? = nil, data: DataBucket, lineage: UInt64, outer: (any KeptExecution)?,
    isWithinUndo: Bool, isOnce: Bool = false, cache: CachePolicy? = nil, loop: FlowEventLoop
  ) {
    self.name = name
    self.names = names
    self.code = code
    self.codeOrigin = codeOrigin
    self.inputs = inputs
    self.given = given
    self.output = output
    self.data = data
    self.lineage = lineage
    self.outer = outer
    self.isWithinUndo = isWithinUndo
    self.isOnce = isOnce
    self.cache = cache
    self.loop = loop
  }
}

/// The streams that an op writes for other steps of a graph. Nothing of them is kept.
package struct KeptStreams {
  /// The paths of the steps that take items, also through groups and other streams.
  package let takers: [ByteString]
  /// Whether all of these are ops that read streams, so that nothing else gets items or a list of them.
  package let areReaders: Bool
}

/// How an op is named among all others.
package struct KeptNames {
  /// Its name in log lines: `UploadOp #3`.
  package var shown: ByteString { makeShown() }
  /// Makes that; it is hardly ever needed.
  let makeShown: () -> ByteString
  /// The label of its item, if it has one.
  package let label: ByteString?
  /// The names of all that encloses it, and its own.
  package let path: ByteString

  init(label: ByteString?, path: ByteString, shown: @escaping () -> ByteString) {
    self.label = label
    self.path = path
    makeShown = shown
  }
}

/// A keeper's decision about an op.
package enum KeepingDecision {
  /// It is executed; the line says why, if it was known to the keeper.
  case execute(any KeptExecution, line: ByteString?)
  /// It had finished already.
  case finished(KnownEnd)
  /// It fails without being executed.
  case fail(FlowError)
  /// It isn't executed, and the run fails, whatever policies say about failures.
  case refuse(FlowError)
  /// The keeper has to be asked again, with this `reading`, after that has ended.
  case later(any KeptReading)
}

/// The reading of what a decision depends on, such as the content of files, or the answer of a person.
package protocol KeptReading: AnyObject {
  /// Reads without blocking the loop; calls `then` on the loop's thread, not at once.
  func begin(then: @escaping () -> Void)
  /// Ends the reading early; `then` is called nevertheless.
  func cancel()
}

/// The end of an op that had finished already, as its keeper knows it.
package struct KnownEnd {
  /// The tables that it hasn't made, but changed, with the content that they had at its end. They come before `writes`.
  package var changes: [(key: DataKey, value: FlowValue)]
  /// The values that it has set; `.null` removes a key.
  package var writes: [(key: DataKey, value: FlowValue)]
  /// The result of a step.
  package var result: FlowValue
  /// The keys that it has read without a declaration.
  package var reads: [DataKey]
  /// The line of the log.
  package var line: ByteString
  /// The lineage of its execution; nil for one of another run.
  package var lineage: UInt64?
  /// The undos of ops that it had executed over its data.
  package var undos: [KnownUndo]
  /// Called when it has been undone.
  package var undone: UndoneKeeping
  /// Called when its own undo has undone what it had executed.
  package var innerUndone: UndoneKeeping

  package init(
    changes: [(key: DataKey, value: FlowValue)], writes: [(key: DataKey, value: FlowValue)],
    result: FlowValue, reads: [DataKey], line: ByteString,
    lineage: UInt64?, undos: [KnownUndo], undone: @escaping UndoneKeeping,
    innerUndone: @escaping UndoneKeeping
  ) {
    self.changes = changes
    self.writes = writes
    self.result = result
    self.reads = reads
    self.line = line
    self.lineage = lineage
    self.undos = undos
    self.undone = undone
    self.innerUndone = innerUndone
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
  package let outputs: [(key: DataKey?, value: FlowValue)]
  /// The undos of ops that it has executed over its data, in the order of their ends.
  package var undos: [KeptUndo] = []
}

/// The undo of an op that another op has executed over its own data, as a process that continues the run needs it.
package struct KeptUndo {
  /// Where the op's data are.
  package enum Place: UInt8 {
    /// They are those of the enclosing op.
    case same
    /// It has data of its own, and reads those of the enclosing op through them, as an item of a group does.
    case within
    /// It has data of its own alone, as a step of a machine does.
    case apart
  }

  package var name: ByteString
  /// The place of the undo in `Op.executedUndos` of the enclosing op; nil when it isn't there.
  package var number: Int?
  /// The item's number in a group, 0 outside of one.
  package var index: Int
  /// The number of the attempt that has succeeded.
  package var attempt: Int
  package var lineage: UInt64
  package var place: Place
  /// The op's own data.
  package var data: [(key: DataKey, value: FlowValue)]

  package init(
    name: ByteString, number: Int?, index: Int, attempt: Int, lineage: UInt64, place: Place,
    data: [(key: DataKey, value: FlowValue)]
  ) {
    self.name = name
    self.number = number
    self.index = index
    self.attempt = attempt
    self.lineage = lineage
    self.place = place
    self.data = data
  }
}

/// An undo that was kept, and what to call when it has been executed.
package struct KnownUndo {
  package var undo: KeptUndo
  package var undone: UndoneKeeping

  package init(_ undo: KeptUndo, undone: @escaping UndoneKeeping) {
    self.undo = undo
    self.undone = undone
  }
}

/// The keeping of one execution of an op, over all its attempts.
package protocol KeptExecution: AnyObject {
  /// The lineage of the execution: the same in all attempts and processes; see Lineage.swift.
  var lineage: UInt64 { get }
  /// The identity that tells the execution from all others of its run, in all processes: its lineage, the op's
  /// code, and its inputs. nil if these can't be compared.
  var identity: ByteString? { get }
  /// Whether an earlier process had begun the same execution, and didn't record its end.
  var wasInterrupted: Bool { get }
  /// Whether it continues one that an earlier process had begun and that hadn't come to its end: waits that have timed out in
  /// it aren't waited again.
  var continuesWaits: Bool { get }
  /// Calls `body` when the end of the execution is kept, or needn't be. On the loop's thread.
  func afterEnd(_ body: @escaping () -> Void)
  /// Whether the execution's start has to be kept before the body is called.
  var keepsStart: Bool { get }
  /// Keeps the start; calls `then` on the loop's thread, perhaps at once, with the reason why it can't.
  func keepStart(then: @escaping (FlowError?) -> Void)
  /// The op reads a key of its data.
  func willRead(_ key: DataKey, in bucket: DataBucket)
  /// The op's effect depends on the content of a file that isn't among its inputs.
  func dependsOn(_ path: ByteString)
  /// The op has made a temporary folder, which is removed with the run.
  func makesFolder(_ path: ByteString)
  /// The op writes a line into the log.
  func noteLine(_ text: ByteString)
  /// The op sets or removes a key of its data.
  func willSet(_ key: DataKey)
  /// The op has ended; calls `then` on the loop's thread, perhaps at once, when that is kept, or with the reason
  /// why it can't be: the run then fails, whatever policies say about failures.
  func keepEnd(_ end: KeptEnd, then: @escaping (FlowError?) -> Void)
  /// The op had succeeded and has been undone: it is executed again, with another lineage, by this process or one
  /// that continues the run. Calls `then` as `keepEnd` does.
  func keepUndone(then: @escaping (FlowError?) -> Void)
  /// Whether it or anything around it has an undo, so that it has to know the ops that it has executed.
  var isWithinUndo: Bool { get }
  /// An op that this one has executed is kept as finished; `undone` keeps that it was undone.
  func noteInner(undone: @escaping UndoneKeeping)
  /// Keeps that its own undo has undone the ops that it has executed.
  func keepInnerUndone(then: @escaping (FlowError?) -> Void)
}
