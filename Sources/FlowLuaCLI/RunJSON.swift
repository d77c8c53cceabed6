internal import FlowEngine

/// A run as one line of JSON, for programs that read summaries.
struct RunJSON {
  private var text: [UInt8] = []

  private init() {}

  static func text(of run: Run) -> ByteString {
    var json = RunJSON()
    json.write("{\"run\":")
    json.write(string: run.name)
    json.field("id", "\(run.id)")
    json.field("identifier", run.identifier)
    json.field("started", number(run.started))
    json.write(",\"state\":")
    json.write(string: run.state.name)
    json.field("duration", number(run.duration))
    json.field("finished_early", run.isFinishedEarly ? "true" : "false")
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
    return ByteString(json.text)
  }

  private mutating func write(_ event: Event) {
    write("{\"time\":\(Self.number(event.time)),\"kind\":")
    write(string: event.kind.name)
    field("id", "\(event.id)")
    if let parent = event.parent { field("parent", "\(parent)") }
    field("path", event.path)
    field("run", event.run)
    field("lane", "\(event.lane)")
    if let queued = event.queued { field("queued", Self.number(queued)) }
    field("op", event.op)
    if event.index > 0 { field("index", "\(event.index)") }
    field("attempt", "\(event.attempt)")
    field("message", event.message)
    field("key", event.key)
    field("value", event.value)
    field("old_value", event.oldValue)
    if let done = event.done { field("done", Self.number(done)) }
    if let total = event.total { field("total", Self.number(total)) }
    write("}")
  }

  private mutating func write(_ plain: String) { text += plain.utf8 }

  /// A field whose value is JSON already.
  private mutating func field(_ name: String, _ json: String) { write(",\"\(name)\":\(json)") }

  private mutating func field(_ name: String, _ value: ByteString?) {
    guard let value else { return }
    write(",\"\(name)\":")
    write(string: value)
  }

  /// JSON has neither infinities nor NaN.
  private static func number(_ number: Double) -> String {
    guard number.isFinite else { return "null" }
    if let whole = Int64(exactly: number) { return "\(whole)" }
    return "\(number)"
  }

  /// A string in quotes; U+FFFD replaces bytes that aren't UTF-8.
  private mutating func write(string: ByteString) {
    text.append(UInt8(ascii: "\""))
    for byte in string.description.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        text.append(UInt8(ascii: "\\"))
        text.append(byte)
      case UInt8(ascii: "\n"): write("\\n")
      case 0..<32, 127:
        let digits = String(byte, radix: 16)
        write("\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits)
      default: text.append(byte)
      }
    }
    text.append(UInt8(ascii: "\""))
  }
}
