internal import FlowEngine
internal import LuaVM

/// The function of an op, as the workers know it: by its number, so that it travels once.
final class WorkerCode: Sendable {
  let id: UInt64
  let package: CodePackage

  init(id: UInt64, package: CodePackage) {
    self.id = id
    self.package = package
  }
}

/// What an op declares, on its way to a worker.
struct WorkerDeclaration: Sendable {
  let name: ByteString
  /// As it was written; a worker parses it anew.
  let type: ByteString
}

/// One execution of an op, or one call of a function.
struct WorkerJob: Sendable {
  let code: WorkerCode
  /// What the function is called with, behind `ctx` where there is one.
  let arguments: WireBatch
  let kind: Kind

  enum Kind: Sendable {
    case op(OpPlace)
    /// A continuation; how it gets what the task before has come to.
    case call(CallInput)
  }

  /// Where an op executes, for what `ctx` tells.
  struct OpPlace: Sendable {
    let name: ByteString
    let index: Int
    let attempt: Int
    /// Seconds that its cleanups have once it was stopped; nil for the default.
    let grace: Double?
    /// What its flow is ending with, of a final step.
    let endingError: WireError?
    /// The keys that it may ask for.
    let visible: [ByteString]
    /// Those of them that have a value, which stands at the same place of `data`.
    let keys: [ByteString]
    let data: WireBatch
  }

  enum CallInput: Sendable {
    /// The arguments alone.
    case values
    /// A settled copy of the task: of its result, which is the argument, or of its error.
    case task(WireError?)
    /// The error alone.
    case error(WireError)
  }
}

/// A group whose items a worker executes.
struct WorkerGroup: Sendable {
  let code: WorkerCode
  let arguments: WireBatch
  let name: ByteString
  let needs: [WorkerDeclaration]
  let gives: [WorkerDeclaration]
  let itemKey: ByteString
  let collectKey: ByteString?
  /// What items read through to.
  let keys: [ByteString]
  let data: WireBatch
  /// The most items that execute at the same time in this worker.
  let limit: Int
  let stopsAtFailure: Bool
  /// What its flow is ending with, of a final step.
  let endingError: WireError?
}

/// What a worker is asked to do.
enum WorkerOrder: Sendable {
  case start(id: UInt64, WorkerJob)
  case open(id: UInt64, WorkerGroup)
  /// Items of a group: the first one's 0-based index there, and the items.
  case items(id: UInt64, first: Int, WireBatch)
  /// There are no more.
  case close(id: UInt64)
  /// The code with this number isn't used any more.
  case forget(code: UInt64)
}

/// What a worker has done since it told last.
struct WorkerReport: Sendable {
  /// How many orders it had taken.
  var taken: UInt64 = 0
  /// Whether it now waits for something to happen, so that it can begin with something else; nil
  /// when it goes on.
  var sleep: Sleep?
  var jobs: [JobEvent] = []
  var groups: [GroupEvents] = []
  /// Failures of tasks that nobody observed, and nobody can any more.
  var failures: [(name: ByteString, error: WireError)] = []

  var isEmpty: Bool { jobs.isEmpty && groups.isEmpty && failures.isEmpty }

  /// What a worker waits for that has nothing to do.
  enum Sleep: Equatable {
    /// For somebody else: nothing of its own can go on.
    case idle
    /// For a time of the real clock, or a program.
    case busyElsewhere
    /// For a time of the virtual clock.
    case until(Int64)
  }

  struct JobEvent: Sendable {
    let id: UInt64
    let time: Int64
    let what: What

    enum What: Sendable {
      case log(ByteString)
      case progress(done: Double, total: Double?)
      /// `.null` removes the key.
      case set(ByteString, WireValue, WireBatch)
      case ended(WireError?, result: WireValue, WireBatch)
    }
  }

  struct GroupEvents: Sendable {
    let id: UInt64
    let slice: LogSlice
    /// The 0-based indices of the items that have ended; the outputs stand at the same places.
    let indices: ContiguousArray<Int32>
    let outputs: WireBatch
    /// The errors of those that have failed, each with its place, in order.
    let failures: [(place: Int, error: WireError)]
    /// How long the worker was busy with it, in nanoseconds.
    let busy: Int64
  }
}
