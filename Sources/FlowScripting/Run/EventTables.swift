internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The events of a run for `run:events()`: a list of tables
/// `{ time, kind, id, parent?, path, run, lane, queued?, op, index?, label?, attempt, message?, key?, value?, old_value?, done?, total? }`,
/// and for programs and requests `{ started, outcome, method?, url?, status?, signal?, pid?, bytes?, error?, error_kind? }`.
///
/// | field | meaning |
/// |---|---|
/// | `time` | seconds since the run began |
/// | `kind` | `start finish log set replace remove retry group case transition state progress program_start program request_start request undo_start undo kept` |
/// | `id` | the execution it is about: unique in the run, 0 for the run itself |
/// | `parent` | the `id` of the flow, group or op that encloses it |
/// | `path` | the names of all that encloses it and its own: `publish/ShardsOp #2/CountOp #1` |
/// | `run` | the id of the run, unique across processes |
/// | `lane` | 0 for the main thread, else the number of the worker, or the name of one of another machine: `gpu1/3` |
/// | `queued` | of an item's `start`: when it could have begun, in seconds since the run began |
/// | `op` | the name of the op it is about |
/// | `index` | the op's index in a group, from 1; absent outside of one |
/// | `label` | the label of the item, if its group gives labels |
/// | `attempt` | the number of the attempt at the op, from 1 |
/// | `message` | of `log` the message; of `finish`, `undo`, `kept`, `retry`, `group`, `case`, `transition` and `state` the line's text; of `program` the command; of `request` method and URL |
/// | `key` | of `set`, `replace` and `remove` |
/// | `value` | the new value or a machine's new state as text, as a line shows it; `<redacted>` for a secret |
/// | `old_value` | of `replace` the previous value as text |
/// | `done`, `total` | of `progress` |
/// | `started` | of a program, request or undo, when it started: `time` is its end |
/// | `outcome` | how it ended for its task: `succeeded`, `failed` or `cancelled` |
/// | `method`, `url` | of a request; the URL without user and query |
/// | `status` | the exit status, or that of the response |
/// | `signal`, `pid` | of a program: the signal that has ended it, the number of its process |
/// | `bytes` | of a request: the size of the response's body |
/// | `error`, `error_kind` | of one that has failed: message and kind of the error |
///
/// The tables are filled one after another, so that a list of a million needs no second copy of
/// them.
struct EventTables {
  private let vm: LuaVM
  private var fields: [(ByteString, LuaValue)] = []

  init(_ vm: LuaVM) {
    self.vm = vm
  }

  /// All events of the run so far.
  mutating func list(of run: Run) throws -> LuaReference {
    let list = try vm.makeTable()
    var index = 0
    for event in run.events {
      index += 1
      try vm.set(.reference(try table(of: event)), at: index, in: list)
    }
    return list
  }

  private mutating func table(of event: RunEvent) throws -> LuaReference {
    fields.removeAll(keepingCapacity: true)
    fields.append((Name.time, .number(event.seconds)))
    fields.append((Name.kind, .string(event.kind.nameBytes)))
    fields.append((Name.id, .integer(Int64(truncatingIfNeeded: event.id))))
    if let parent = event.parent {
      fields.append((Name.parent, .integer(Int64(truncatingIfNeeded: parent))))
    }
    add(Name.path, event.pathBytes)
    add(Name.run, event.runBytes)
    fields.append(
      (Name.lane, event.laneName.map { .string($0) } ?? .integer(Int64(event.lane))))
    if let queued = event.queued { fields.append((Name.queued, .number(queued.inSeconds))) }
    fields.append((Name.op, .string(event.opBytes)))
    if event.index > 0 { fields.append((Name.index, .integer(Int64(event.index)))) }
    add(Name.label, event.labelBytes)
    fields.append((Name.attempt, .integer(Int64(event.attempt))))
    add(Name.message, event.messageBytes)
    add(Name.key, event.keyBytes)
    add(Name.value, event.valueBytes)
    add(Name.oldValue, event.oldValue)
    if let done = event.done { fields.append((Name.done, LuaValue(amount: done))) }
    if let total = event.total { fields.append((Name.total, LuaValue(amount: total))) }
    if let work = event.work { add(work, endedAt: event.seconds) }
    if let undo = event.undo { add(undo, endedAt: event.seconds) }
    return try vm.makeTable(fields: fields)
  }

  private mutating func add(_ name: ByteString, _ text: ByteString?) {
    if let text { fields.append((name, .string(text))) }
  }

  private mutating func add(_ work: LoggedWork, endedAt time: Double) {
    // The time of a start says when.
    if work.outcome != .running {
      fields.append((Name.started, .number(work.start(endedAt: time))))
      add(Name.outcome, work.outcome.name)
    }
    if let method = work.method {
      add(Name.method, method)
      add(Name.url, work.subject)
    }
    add(Name.status, work.status)
    add(Name.signal, work.signal)
    add(Name.pid, work.process)
    add(Name.bytes, work.byteCount.map { Int($0) })
    add(Name.error, work.error)
    add(Name.errorKind, work.errorKind)
  }

  private mutating func add(_ undo: LoggedUndo, endedAt time: Double) {
    fields.append((Name.started, .number(undo.start(endedAt: time))))
    add(Name.outcome, undo.outcome.name)
    add(Name.error, undo.error)
    add(Name.errorKind, undo.errorKind)
  }

  private mutating func add(_ name: ByteString, _ number: Int?) {
    if let number { fields.append((name, .integer(Int64(number)))) }
  }

  /// Made once: a million events use each of them as often.
  private enum Name {
    static let time: ByteString = "time"
    static let kind: ByteString = "kind"
    static let id: ByteString = "id"
    static let parent: ByteString = "parent"
    static let path: ByteString = "path"
    static let run: ByteString = "run"
    static let lane: ByteString = "lane"
    static let queued: ByteString = "queued"
    static let op: ByteString = "op"
    static let index: ByteString = "index"
    static let label: ByteString = "label"
    static let attempt: ByteString = "attempt"
    static let message: ByteString = "message"
    static let key: ByteString = "key"
    static let value: ByteString = "value"
    static let oldValue: ByteString = "old_value"
    static let done: ByteString = "done"
    static let total: ByteString = "total"
    static let started: ByteString = "started"
    static let outcome: ByteString = "outcome"
    static let method: ByteString = "method"
    static let url: ByteString = "url"
    static let status: ByteString = "status"
    static let signal: ByteString = "signal"
    static let pid: ByteString = "pid"
    static let bytes: ByteString = "bytes"
    static let error: ByteString = "error"
    static let errorKind: ByteString = "error_kind"
  }
}

extension LuaValue {
  /// A number that scripts may have passed as an integer.
  fileprivate init(amount: Double) {
    self = Int64(exactly: amount).map { .integer($0) } ?? .number(amount)
  }
}

extension ScriptHost {
  /// The events of a run as a list of tables.
  func events(of run: Run) throws -> LuaReference {
    var tables = EventTables(vm)
    return try tables.list(of: run)
  }
}
