internal import FlowEngine
internal import FlowScripting
internal import LuaVM

/// A run as one line of JSON, for programs that read summaries.
enum RunJSON {
  /// How many bytes are written at once, or a few more: the text of a long log takes more memory than the log.
  private static let portion = 1 << 16

  /// Writes the line in portions.
  static func write(_ run: Run, _ host: ScriptHost?, _ write: (ByteString) -> Void) {
    var json = JSONText()
    json.append(raw: "{")
    json.field("run", run.loop.secrets.redacted(run.nameBytes))
    json.field("id", run.id)
    json.field("identifier", run.identifierBytes)
    json.field("started", run.started)
    json.field("ended", run.started + run.duration.inSeconds)
    json.field("state", run.state.nameBytes)
    json.field("duration", run.duration.inSeconds)
    json.field("finished_early", run.isFinishedEarly)
    if run.droppedEvents > 0 { json.field("dropped_events", run.droppedEvents) }
    json.field(errorOf: run, host)
    if let host {
      json.begin("data")
      host.appendData(of: run, to: &json)
    }
    json.begin("events")
    json.append(raw: "[")
    var isFirst = true
    var (undone, undosFailed, kept) = (0, 0, 0)
    for event in run.events {
      if !isFirst { json.append(raw: ",") }
      isFirst = false
      json.append(event)
      if json.bytes.count >= portion {
        write(ByteString(json.bytes))
        json = JSONText()
      }
      switch event.kind {
      case .undo: if event.undo?.outcome == .succeeded { undone += 1 } else { undosFailed += 1 }
      case .kept: kept += 1
      default: break
      }
    }
    json.append(raw: "]")
    if undone > 0 { json.field("undone", undone) }
    if undosFailed > 0 { json.field("undos_failed", undosFailed) }
    if kept > 0 { json.field("kept", kept) }
    json.append(raw: "}\n")
    write(ByteString(json.bytes))
  }
}

// Objects, and those that more than one option writes.
extension JSONText {
  /// Appends the name of a field, after a comma unless the object begins with it.
  mutating func begin(_ name: String) {
    append(raw: bytes.last == UInt8(ascii: "{") ? "\"\(name)\":" : ",\"\(name)\":")
  }

  mutating func field(_ name: String, _ number: Double) {
    begin(name)
    append(number)
  }

  mutating func field(_ name: String, _ number: some BinaryInteger) {
    begin(name)
    append(raw: "\(number)")
  }

  mutating func field(_ name: String, _ flag: Bool) {
    begin(name)
    append(raw: flag ? "true" : "false")
  }

  /// Appends a text, or nothing when there is none.
  mutating func field(_ name: String, _ text: ByteString?) {
    guard let text else { return }
    begin(name)
    append(text)
  }

  /// Appends an event, with the fields of `run:events()`.
  mutating func append(_ event: RunEvent) {
    append(raw: "{")
    field("time", event.seconds)
    field("kind", event.kind.nameBytes)
    field("id", event.id)
    if let parent = event.parent { field("parent", parent) }
    field("path", event.pathBytes)
    field("run", event.runBytes)
    if let name = event.laneName { field("lane", name) } else { field("lane", event.lane) }
    if let queued = event.queued { field("queued", queued.inSeconds) }
    field("op", event.opBytes)
    if event.index > 0 { field("index", event.index) }
    field("label", event.labelBytes)
    field("attempt", event.attempt)
    field("message", event.messageBytes)
    field("key", event.keyBytes)
    field("value", event.valueBytes)
    field("old_value", event.oldValue)
    if let done = event.done { field("done", done) }
    if let total = event.total { field("total", total) }
    if let work = event.work {
      if work.outcome != .running {
        field("started", work.start(endedAt: event.seconds))
        field("outcome", work.outcome.name)
      }
      field("method", work.method)
      if work.method != nil { field("url", work.subject) }
      if let status = work.status { field("status", status) }
      if let signal = work.signal { field("signal", signal) }
      if let process = work.process { field("pid", process) }
      if let count = work.byteCount { field("bytes", count) }
      field("error", work.error)
      field("error_kind", work.errorKind)
    }
    if let undo = event.undo {
      field("started", undo.start(endedAt: event.seconds))
      field("outcome", undo.outcome.name)
      field("error", undo.error)
      field("error_kind", undo.errorKind)
    }
    append(raw: "}")
  }

  /// Appends the field `error` of a run that has failed, with the fields that the script gave it.
  mutating func field(errorOf run: Run, _ host: ScriptHost?) {
    guard let error = run.error else { return }
    begin("error")
    append(raw: "{")
    field("kind", error.kind.nameBytes)
    field("message", error.messageBytes)
    field("op", error.opBytes)
    field("path", error.pathBytes)
    if let host {
      var fields = JSONText()
      if host.appendFields(of: error, to: &fields) {
        begin("fields")
        append(fields)
      }
    }
    append(raw: "}")
  }
}
