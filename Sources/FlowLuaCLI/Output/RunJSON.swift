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
    json.field("run", run.loop.secrets.redacted(run.name))
    json.field("id", run.id)
    json.field("identifier", run.identifier)
    json.field("started", run.started)
    if run.state != .pending { json.field("ended", run.started + run.duration.inSeconds) }
    json.field("state", run.state.name)
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
    var (undone, undosFailed, kept) = (0, 0, 0)
    for event in run.events {
      json.separate()
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

extension JSONText {
  /// Appends an event, with the fields of `run:events()`.
  mutating func append(_ event: RunEvent) {
    object { json in
      event.forEachField { field, value in
        switch value {
        case .bytes(let text): json.field(field.name, text)
        case .integer(let number): json.field(field.name, number)
        case .number(let number): json.field(field.name, number)
        default: break
        }
      }
    }
  }

  /// Appends the field `error` of a run that has failed, with the fields that the script gave it.
  mutating func field(errorOf run: Run, _ host: ScriptHost?) {
    guard let error = run.error else { return }
    object("error") { json in
      json.field("kind", error.kind.name)
      json.field("message", error.message)
      json.field("op", error.op)
      json.field("path", error.path)
      guard let host else { return }
      var fields = JSONText()
      if host.appendFields(of: error, to: &fields) {
        json.begin("fields")
        json.append(fields)
      }
    }
  }
}
