internal import FlowEngine
internal import LuaVM

/// The events of a run as `run:events()` gives them: a list of tables
/// `{ time, kind, op, index?, attempt, message?, key?, value?, old_value?, done?, total? }`.
///
/// | field | is |
/// |---|---|
/// | `time` | seconds since the run began |
/// | `kind` | `start finish log set replace remove retry group case transition state progress` |
/// | `op` | the name of the op it is about |
/// | `index` | the op's index in a group, from 1; absent outside of one |
/// | `attempt` | which attempt at the op, from 1 |
/// | `message` | of `log` what was said; of `finish`, `retry`, `group`, `case`, `transition` and `state` the line's text |
/// | `key` | of `set`, `replace` and `remove` |
/// | `value` | the text of what was set, or of a machine's new state, as a line shows it; of a secret `<redacted>` |
/// | `old_value` | of `replace` the text of what stood there |
/// | `done`, `total` | of `progress` |
///
/// One table is filled after the other, so that a list of a million holds no second copy of them.
struct EventTables {
  private let vm: LuaVM
  private var fields: [(LuaString, LuaValue)] = []

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

  private mutating func table(of event: Event) throws -> LuaReference {
    fields.removeAll(keepingCapacity: true)
    fields.append((Name.time, .number(event.time)))
    fields.append((Name.kind, .string(LuaString(event.kind.name))))
    fields.append((Name.op, .string(LuaString(event.op))))
    if event.index > 0 { fields.append((Name.index, .integer(Int64(event.index)))) }
    fields.append((Name.attempt, .integer(Int64(event.attempt))))
    add(Name.message, event.message)
    add(Name.key, event.key)
    add(Name.value, event.value)
    add(Name.oldValue, event.oldValue)
    if let done = event.done { fields.append((Name.done, LuaValue(amount: done))) }
    if let total = event.total { fields.append((Name.total, LuaValue(amount: total))) }
    return try vm.makeTable(fields: fields)
  }

  private mutating func add(_ name: LuaString, _ text: ByteString?) {
    if let text { fields.append((name, .string(LuaString(text)))) }
  }

  /// Made once: a million events have as many of each.
  private enum Name {
    static let time: LuaString = "time"
    static let kind: LuaString = "kind"
    static let op: LuaString = "op"
    static let index: LuaString = "index"
    static let attempt: LuaString = "attempt"
    static let message: LuaString = "message"
    static let key: LuaString = "key"
    static let value: LuaString = "value"
    static let oldValue: LuaString = "old_value"
    static let done: LuaString = "done"
    static let total: LuaString = "total"
  }
}

extension LuaValue {
  /// A number that scripts may have given as an integer.
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
