package import FlowEngine
internal import FlowHTTP
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// Runs as spans of OpenTelemetry, in the JSON of OTLP: ids in hexadecimal, times as strings of nanoseconds. A text is one
/// line, so that it is JSON Lines, too.
///
/// A run has a span for each execution, for each attempt if there are several, for each undo, and for each program
/// and request. Names of attributes are those of the semantic conventions where these have some.
package struct RunOTLP {
  /// The bytes with which each text starts.
  package static let start = "{\"resourceSpans\"".bytes

  private let trace: TraceContext
  private let head: JSONText
  private let limit: Int
  private var text = JSONText()
  private var texts: [ByteString] = []
  private var isFirst = true

  private init(_ trace: TraceContext, _ resource: TraceResource, limit: Int) {
    self.trace = trace
    self.limit = limit
    var head = JSONText()
    head.append(raw: String(decoding: Self.start, as: UTF8.self))
    head.append(raw: ":[{\"resource\":{\"attributes\":[")
    for (name, value) in resource.attributes { head.add(name, value) }
    head.append(raw: "]},\"scopeSpans\":[{\"scope\":{\"name\":\"flowlua\"},\"spans\":[")
    self.head = head
    text = head
  }

  /// The spans of these runs as one text.
  package static func text(
    of runs: [RunSpans], _ trace: TraceContext, _ resource: TraceResource
  ) -> ByteString {
    texts(of: runs, trace, resource, limit: .max)[0]
  }

  /// The spans of these runs in texts of about `limit` bytes at most, at least one.
  package static func texts(
    of runs: [RunSpans], _ trace: TraceContext, _ resource: TraceResource, limit: Int
  ) -> [ByteString] {
    var view = RunOTLP(trace, resource, limit: limit)
    for run in runs { view.add(run) }
    if !view.isFirst || view.texts.isEmpty { view.endText() }
    return view.texts
  }

  private mutating func endText() {
    text.append(raw: "]}]}]}\n")
    texts.append(ByteString(text.bytes))
    text = head
    isFirst = true
  }

  private mutating func add(_ run: RunSpans) {
    for span in run.spans { add(span, of: run) }
    for index in run.undos.indices { addUndo(index, of: run) }
    for (index, work) in run.works.enumerated() where work.work.kind != .wait {
      add(work, number: index, of: run)
    }
  }

  // MARK: Executions

  private mutating func add(_ span: Span, of run: RunSpans) {
    let id = run.traceID(of: span)
    let attempts = run.attempts(of: span)
    let error = run.error(of: span)
    let parent =
      span.parent < 0 ? trace.parent : Self.spanID(in: run, of: span.parent, at: span.start)
    begin(run.name(of: span), id, parent: parent, kind: 1, run, span.start, span.end)
    if span.parent < 0, let state = trace.state, trace.parent != 0 {
      text.append(raw: ",\"traceState\":")
      text.append(state)
    }
    text.append(raw: ",\"attributes\":[")
    text.add("flowlua.kind", Self.name(of: span.kind))
    text.add("flowlua.path", run.path(of: span))
    text.add("flowlua.outcome", span.outcome.name)
    if span.parent < 0 { text.add("flowlua.run", run.runID) }
    // In the log of another run it would mean another execution.
    if !span.isInChildRun { text.add("flowlua.id", Int64(truncatingIfNeeded: span.id)) }
    if span.index > 0 { text.add("flowlua.index", Int64(span.index)) }
    if let label = run.label(of: span) { text.add("flowlua.label", label) }
    if let name = run.lanes[span.lane] {
      text.add("flowlua.worker", name)
    } else if span.lane > 0 {
      text.add("flowlua.worker", Int64(span.lane))
    }
    if span.start > span.queued { text.add("flowlua.queued", duration: span.start - span.queued) }
    if let line = run.keptLine(of: span) { text.add("flowlua.kept", line) }
    if attempts.count > 1 { text.add("flowlua.attempts", Int64(attempts.count)) }
    if span.outcome == .failed { text.add("error.type", error?.kind?.name ?? "error") }
    text.append(raw: "],\"events\":[")
    var hasEvent = false
    for (place, attempt) in attempts.enumerated() where attempt.number <= span.retryCount {
      beginEvent("retry", run, attempt.end, &hasEvent)
      text.add("flowlua.attempt", Int64(attempt.number))
      if place + 1 < attempts.count {
        text.add("flowlua.wait", duration: attempts[place + 1].start - attempt.end)
      }
      text.add("exception.type", attempt.errorKind?.name ?? "error")
      text.add("exception.message", attempt.message ?? "")
      text.append(raw: "]}")
    }
    if span.outcome == .failed, let error {
      addException(error.message, error.kind?.name, run, span.end, &hasEvent)
    }
    end(span.outcome, error?.message)
    guard attempts.count > 1 else { return }
    for attempt in attempts { add(attempt, id, of: span, run) }
  }

  private mutating func add(
    _ attempt: SpanAttempt, _ parent: UInt64, of span: Span, _ run: RunSpans
  ) {
    begin(
      "\(run.name(of: span)) attempt", SpanID.part(UInt64(attempt.number), of: parent),
      parent: parent, kind: 1, run, attempt.start, attempt.end)
    text.append(raw: ",\"attributes\":[")
    text.add("flowlua.kind", "attempt")
    text.add("flowlua.path", run.path(of: span))
    text.add("flowlua.attempt", Int64(attempt.number))
    text.add("flowlua.outcome", attempt.outcome.name)
    if attempt.outcome == .failed {
      text.add("error.type", attempt.errorKind?.name ?? "error")
    }
    text.append(raw: "],\"events\":[")
    if attempt.outcome == .failed {
      var hasEvent = false
      addException(attempt.message ?? "", attempt.errorKind?.name, run, attempt.end, &hasEvent)
    }
    end(attempt.outcome, attempt.message)
  }

  // MARK: Undos

  /// A child of the span of the op: the flow that undoes it may be far from there.
  private mutating func addUndo(_ index: Int, of run: RunSpans) {
    let undo = run.undos[index]
    let span = run.spans[Int(undo.parent)]
    begin(
      "undo \(undo.isOfSpan ? run.name(of: span) : undo.name)", Self.undoID(index, of: run),
      parent: run.traceID(of: span), kind: 1, run, undo.start, undo.end)
    text.append(raw: ",\"attributes\":[")
    text.add("flowlua.kind", "undo")
    text.add("flowlua.path", run.path(of: undo))
    text.add("flowlua.outcome", undo.outcome.name)
    if undo.error != nil { text.add("error.type", undo.errorKind ?? "error") }
    text.append(raw: "],\"events\":[")
    if let error = undo.error {
      var hasEvent = false
      addException(error, undo.errorKind, run, undo.end, &hasEvent)
    }
    end(undo.outcome, undo.error)
  }

  /// Above all numbers of attempts.
  private static func undoID(_ index: Int, of run: RunSpans) -> UInt64 {
    SpanID.part(1 << 32 | UInt64(index), of: run.traceID(of: run.root))
  }

  private static func name(of kind: Span.Kind) -> ByteString {
    switch kind {
    case .op: "op"
    case .flow: "flow"
    case .group: "group"
    }
  }

  /// The id of the span that encloses something of an execution at a time: its own, or an attempt's.
  private static func spanID(in run: RunSpans, of index: Int32, at time: Int64) -> UInt64 {
    if let undo = run.undo(of: index, at: time) { return undoID(undo, of: run) }
    let span = run.spans[Int(index)]
    let id = run.traceID(of: span)
    guard span.retryCount > 0 else { return id }
    let attempts = run.attempts(of: span)
    guard attempts.count > 1, let attempt = attempts.last(where: { $0.start <= time }) else {
      return id
    }
    return SpanID.part(UInt64(attempt.number), of: id)
  }

  // MARK: Programs and requests

  private mutating func add(_ work: SpanWork, number: Int, of run: RunSpans) {
    let span = run.spans[Int(work.parent)]
    let logged = work.work
    // Below 0 no attempt has its number.
    let id = SpanID.part(~UInt64(number), of: run.traceID(of: run.root))
    let parent = Self.spanID(in: run, of: work.parent, at: work.start)
    // Both are calls of something outside: clients.
    begin(logged.name, id, parent: parent, kind: 3, run, work.start, work.end)
    text.append(raw: ",\"attributes\":[")
    text.add("flowlua.kind", logged.kind == .program ? "program" : "request")
    text.add("flowlua.path", run.path(of: span))
    text.add("flowlua.outcome", logged.outcome.name)
    switch logged.kind {
    case .program:
      text.add("process.executable.name", logged.name)
      text.add("process.command_line", logged.subject)
      if let process = logged.process { text.add("process.pid", Int64(process)) }
      if let status = logged.status { text.add("process.exit.code", Int64(status)) }
      if let signal = logged.signal { text.add("flowlua.signal", Int64(signal)) }
    case .request:
      text.add("http.request.method", logged.name)
      text.add("url.full", logged.subject)
      if let (host, port) = logged.server {
        text.add("server.address", host)
        text.add("server.port", port)
      }
      if let status = logged.status { text.add("http.response.status_code", Int64(status)) }
      if let count = logged.byteCount { text.add("http.response.body.size", count) }
    case .wait: break
    }
    if logged.kind == .request, let status = logged.status, status >= 400 {
      text.add("error.type", "\(status)")
    } else if logged.outcome == .failed || logged.outcome == .cancelled {
      text.add("error.type", logged.errorKind ?? "error")
    }
    text.append(raw: "],\"events\":[")
    end(logged.outcome.ofSpan, logged.error)
  }

  // MARK: Parts of a span

  private mutating func begin(
    _ name: ByteString, _ id: UInt64, parent: UInt64, kind: Int, _ run: RunSpans, _ start: Int64,
    _ end: Int64
  ) {
    if text.bytes.count >= limit { endText() }
    if !isFirst { text.append(raw: ",") }
    isFirst = false
    text.append(raw: "{\"traceId\":\"\(trace.id)\",\"spanId\":\"\(id.hexadecimal)\"")
    if parent != 0 { text.append(raw: ",\"parentSpanId\":\"\(parent.hexadecimal)\"") }
    text.append(raw: ",\"flags\":\(trace.isSampled ? 1 : 0),\"name\":")
    text.append(name)
    text.append(raw: ",\"kind\":\(kind),\"startTimeUnixNano\":\"\(run.started + start)\"")
    text.append(raw: ",\"endTimeUnixNano\":\"\(run.started + end)\"")
  }

  /// Ends the events, and the span with its status.
  private mutating func end(_ outcome: Span.Outcome, _ message: ByteString?) {
    text.append(raw: "]")
    switch outcome {
    case .running: break
    case .succeeded, .kept: text.append(raw: ",\"status\":{\"code\":1}")
    case .failed, .cancelled:
      text.append(raw: ",\"status\":{\"code\":2,\"message\":")
      text.append(message ?? outcome.name)
      text.append(raw: "}")
    }
    text.append(raw: "}")
  }

  private mutating func beginEvent(
    _ name: ByteString, _ run: RunSpans, _ time: Int64, _ hasEvent: inout Bool
  ) {
    if hasEvent { text.append(raw: ",") }
    hasEvent = true
    text.append(raw: "{\"timeUnixNano\":\"\(run.started + time)\",\"name\":")
    text.append(name)
    text.append(raw: ",\"attributes\":[")
  }

  private mutating func addException(
    _ message: ByteString, _ kind: ByteString?, _ run: RunSpans, _ time: Int64,
    _ hasEvent: inout Bool
  ) {
    beginEvent("exception", run, time, &hasEvent)
    text.add("exception.type", kind ?? "error")
    text.add("exception.message", message)
    text.append(raw: "]}")
  }
}

// The attributes of something: objects in a list.
extension JSONText {
  fileprivate mutating func add(_ name: ByteString, _ value: ByteString) {
    attribute(name) { $0.field("stringValue", value) }
  }

  /// In the JSON of OTLP a string.
  fileprivate mutating func add(_ name: ByteString, _ value: Int64) {
    attribute(name) { $0.field("intValue", "\(value)") }
  }

  /// A duration in nanoseconds, written in seconds.
  fileprivate mutating func add(_ name: ByteString, duration: Int64) {
    attribute(name) { $0.field("doubleValue", Double(duration) / 1e9) }
  }

  private mutating func attribute(_ name: ByteString, _ value: (inout JSONText) -> Void) {
    separate()
    object {
      $0.field("key", name)
      $0.object("value", value)
    }
  }
}

extension LoggedWork.Outcome {
  fileprivate var ofSpan: Span.Outcome {
    switch self {
    case .succeeded: .succeeded
    case .failed: .failed
    case .cancelled: .cancelled
    case .running: .running
    }
  }
}

extension LoggedWork {
  /// Host and port of the URL of a request.
  fileprivate var server: (host: ByteString, port: Int64)? {
    let isEncrypted = subject.hasPrefix("https://")
    let rest = subject.bytes.dropFirst(isEncrypted ? 8 : 7)
    var host = rest.prefix { $0 != UInt8(ascii: "/") }
    var port: Int64 = isEncrypted ? 443 : 80
    // The colons within brackets belong to an address.
    if let colon = host.lastIndex(of: UInt8(ascii: ":")), host.last != UInt8(ascii: "]"),
      let number = Int64(String(decoding: host[(colon + 1)...], as: UTF8.self))
    {
      port = number
      host = host[..<colon]
    }
    return host.isEmpty ? nil : (ByteString(host), port)
  }
}

/// The facts that the spans of this process say about it: the resource of OpenTelemetry.
package struct TraceResource {
  /// Names and values.
  package let attributes: [(name: ByteString, value: ByteString)]

  /// Reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
  ///
  /// - Parameters:
  ///   - title: The name of the service when neither of them says it.
  ///   - environment: Returns the value of an environment variable.
  ///   - secrets: The texts that no name and no value shows.
  package init(
    title: ByteString, environment: (String) -> ByteString? = environment,
    hiding secrets: SecretTexts
  ) {
    var given: [(name: ByteString, value: ByteString)] = []
    for (name, value) in Self.pairs(environment("OTEL_RESOURCE_ATTRIBUTES") ?? "") {
      given.removeAll { $0.name == name }
      given.append((name, value))
    }
    if let service = environment("OTEL_SERVICE_NAME") {
      given.removeAll { $0.name == "service.name" }
      given.insert(("service.name", service), at: 0)
    }
    var host = [CChar](repeating: 0, count: 256)
    gethostname(&host, host.count - 1)
    let known: [(name: ByteString, value: ByteString)] = [
      ("service.name", title), ("telemetry.sdk.name", "flowlua"), ("telemetry.sdk.language", "lua"),
      ("host.name", ByteString(host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })),
    ]
    let added = known.filter { known in !given.contains { $0.name == known.name } }
    attributes = (given + added).map { (secrets.redacted($0.name), secrets.redacted($0.value)) }
  }

  /// Reads `name=value,name=value`, in which values are percent-encoded; pairs without a name are left out.
  package static func pairs(_ text: ByteString) -> [(name: ByteString, value: ByteString)] {
    text.bytes.split(separator: UInt8(ascii: ",")).compactMap { pair in
      guard let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      let name = pair[..<sign].trimmed(\.isBlank)
      return name.isEmpty
        ? nil
        : (ByteString(name), ByteString(pair[(sign + 1)...].trimmed(\.isBlank)).percentDecoded)
    }
  }
}

/// Files of spans. A wrong path can't cost another file: only an empty one, or one that has spans, is replaced.
package enum SpanFile {
  /// Why spans don't replace what is at a path; nil if they may, or if there is nothing. May be called on any
  /// thread, and may block.
  package static func problem(replacing path: ByteString) -> ByteString? {
    var status = stat()
    guard path.withCString({ stat($0, &status) }) == 0,
      status.st_mode & S_IFMT == S_IFREG,
      status.st_size > 0, start(of: path) != RunOTLP.start
    else { return nil }
    return "'\(path)' exists and isn't a file of spans; it isn't replaced"
  }

  /// The first bytes of a file, as many as each file of spans has in common; nil if it can't be read.
  private static func start(of path: ByteString) -> [UInt8]? {
    guard let file = path.withCString({ open($0, O_RDONLY | O_CLOEXEC) }), file >= 0 else {
      return nil
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: RunOTLP.start.count)
    let count = bytes.count
    return bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, count, 0) } == count
      ? bytes : nil
  }
}
