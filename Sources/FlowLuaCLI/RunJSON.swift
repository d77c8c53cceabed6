internal import FlowEngine
internal import LuaVM

/// A run as one line of JSON, for programs that read summaries.
struct RunJSON {
  private var text = JSONText()

  private init() {}

  static func text(of run: Run) -> ByteString {
    var json = RunJSON()
    json.write("{\"run\":")
    json.write(string: run.name)
    json.field("id", run.id)
    json.field("identifier", run.identifier)
    json.field("started", run.started)
    json.write(",\"state\":")
    json.write(string: run.state.name)
    json.field("duration", run.duration)
    json.field("finished_early", run.isFinishedEarly)
    if let error = run.error {
      json.write(",\"error\":{\"kind\":")
      json.write(string: error.kind.name)
      json.field("message", error.message)
      json.field("op", error.op)
      json.write("}")
    }
    json.write(",\"events\":[")
    var isFirst = true
    for event in run.events {
      if !isFirst { json.write(",") }
      isFirst = false
      json.write(event)
    }
    json.write("]}")
    return ByteString(json.text.bytes)
  }

  private mutating func write(_ event: Event) {
    write("{\"time\":")
    text.append(event.time)
    begin("kind")
    write(string: event.kind.name)
    field("id", event.id)
    if let parent = event.parent { field("parent", parent) }
    field("path", event.path)
    field("run", event.run)
    field("lane", event.lane)
    if let queued = event.queued { field("queued", queued) }
    field("op", event.op)
    if event.index > 0 { field("index", event.index) }
    field("label", event.label)
    field("attempt", event.attempt)
    field("message", event.message)
    field("key", event.key)
    field("value", event.value)
    field("old_value", event.oldValue)
    if let done = event.done { field("done", done) }
    if let total = event.total { field("total", total) }
    write("}")
  }

  private mutating func write(_ plain: String) { text.append(raw: plain) }

  private mutating func write(string: ByteString) { text.append(string) }

  private mutating func begin(_ name: String) { write(",\"\(name)\":") }

  private mutating func field(_ name: String, _ number: Double) {
    begin(name)
    text.append(number)
  }

  private mutating func field(_ name: String, _ number: some BinaryInteger) {
    begin(name)
    write("\(number)")
  }

  private mutating func field(_ name: String, _ flag: Bool) {
    begin(name)
    write(flag ? "true" : "false")
  }

  private mutating func field(_ name: String, _ value: ByteString?) {
    guard let value else { return }
    begin(name)
    write(string: value)
  }
}
