package import FlowEngine

/// An event that a server sent.
package struct ServerSentEvent: Sendable, Equatable {
  /// The kind of the event; `message` unless the server says something else.
  package var name: ByteString
  /// The lines of data, joined by line ends.
  package var data: ByteString
  /// The last id that the server has given.
  package var id: ByteString?
  /// The milliseconds after which to connect again, if the server has said so.
  package var retry: Int64?
}

/// The parser of `text/event-stream` (WHATWG HTML, section 9.2).
package struct ServerSentEvents: Sendable {
  private var line: [UInt8] = []
  private var name: ByteString = ""
  private var data: [UInt8] = []
  private var hasData = false
  private var id: ByteString?
  private var retry: Int64?
  private var endsWithReturn = false
  private var isFirstLine = true

  /// Makes a parser of a new stream.
  package init() {}

  /// The bytes of the event that isn't complete.
  package var heldCount: Int { line.count + data.count + name.count + (id?.count ?? 0) }

  /// Adds bytes; returns the events that they complete. An event that the stream doesn't complete is
  /// dropped, as the standard says.
  package mutating func add(_ bytes: ByteString) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    for byte in bytes.bytes {
      // CR LF is one end.
      if byte == 10, endsWithReturn {
        endsWithReturn = false
        continue
      }
      endsWithReturn = byte == 13
      guard byte == 10 || byte == 13 else {
        line.append(byte)
        continue
      }
      if let event = endLine() { events.append(event) }
    }
    return events
  }

  private mutating func endLine() -> ServerSentEvent? {
    defer { line.removeAll(keepingCapacity: true) }
    if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    isFirstLine = false
    guard let first = line.first else { return dispatch() }
    if first == UInt8(ascii: ":") { return nil }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.count
    var value = line[min(colon + 1, line.count)...]
    if value.first == 32 { value = value.dropFirst() }
    switch ByteString(line[..<colon]).cases {
    case "event": name = ByteString(value)
    case "data":
      data += value
      data.append(10)
      hasData = true
    case "id": if !value.contains(0) { id = ByteString(value) }
    case "retry": if let number = ByteString(value).decimal { retry = number }
    default: break
    }
    return nil
  }

  private mutating func dispatch() -> ServerSentEvent? {
    defer {
      name = ""
      data = []
      hasData = false
    }
    guard hasData else { return nil }
    return ServerSentEvent(
      name: name.isEmpty ? "message" : name, data: ByteString(data.dropLast()), id: id,
      retry: retry)
  }
}
