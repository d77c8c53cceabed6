internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// The fields and methods of a response.
struct HTTPResponseBindings {
  let host: ScriptHost

  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let response = call.object(1, try HTTPTypes.of(host).response) else {
      throw Arguments(host, call, method: "__index").wrongSelf("response")
    }
    switch call.bytes(2).cases {
    case "status": return call.answer(.integer(Int64(response.status)))
    case "ok": return call.answer(.boolean(response.isSuccess))
    case "url": return call.answer(.string(response.url))
    case "version": return call.answer(.string(response.version))
    case "elapsed": return call.answer(.number(response.elapsed.inSeconds))
    case "saved": return call.answer(response.saved.map { .string($0) } ?? .nil)
    case "body":
      try Self(host: host).checkWhole(response, call, "body")
      return response.body.bytes.withUnsafeBytes { call.answer(bytes: $0) }
    case "headers":
      return call.answer(.reference(try Self(host: host).headers(of: response)))
    case "timings":
      let timings = response.timings
      let fields: [(ByteString, Duration)] = [
        ("resolve", timings.resolve), ("connect", timings.connect), ("tls", timings.tls),
        ("wait", timings.wait), ("receive", timings.receive),
      ]
      return call.answer(
        .reference(try host.vm.makeTable(fields: fields.map { ($0.0, .number($0.1.inSeconds)) })))
    default:
      return try host.absentField(
        call, of: "a response", known: fields + methods.names)
    }
  }

  /// The fields of a response beside its methods.
  static let fields: [String] = [
    "status", "ok", "url", "version", "elapsed", "saved", "body", "headers", "timings",
  ]

  /// The table of a response's header lines; always the same.
  private func headers(of response: FlowHTTPResponse) throws -> LuaReference {
    if let kept = response.attachment as? LuaReference { return kept }
    let table = try host.vm.makeTable(
      fields: RequestFailure.headerFields(response.headers),
      metatable: try HTTPTypes.of(host).headers)
    response.attachment = table
    return table
  }

  /// Refuses the whole body of a response that is streamed.
  private func checkWhole(_ response: FlowHTTPResponse, _ call: LuaCall, _ what: String) throws {
    guard response.stream != nil else { return }
    throw host.usage(
      call, "can't read '\(what)' of a streamed response: use :chunks() or :events()")
  }

  static var methods: LuaFields<BoundMethod> {
    [
      "json": BoundMethod { host, call in
        let (response, arguments) = try Self(host: host).response(call, "json")
        try Self(host: host).checkWhole(response, call, "json")
        let options = try JSONReading(arguments, 1)
        do {
          return call.answer(try host.vm.decodeJSON(response.body, options))
        } catch {
          throw JSONBindings(host: host).textError(
            call, error, in: "response:json", of: HTTPTask.shown(response.url))
        }
      },
      "values": BoundMethod { host, call in
        let (response, arguments) = try Self(host: host).response(call, "values")
        let name = try arguments.string(1).lowercased
        let values = response.headers.filter { $0.name == name }.map {
          LuaValue.string($0.value)
        }
        return call.answer(.reference(try host.vm.makeTable(values: values)))
      },
      "chunks": BoundMethod { host, call in
        let (response, _) = try Self(host: host).response(call, "chunks")
        return try Self(host: host).iterator(HTTPBodyReader(response), call)
      },
      "events": BoundMethod { host, call in
        let (response, _) = try Self(host: host).response(call, "events")
        return try Self(host: host).iterator(
          HTTPBodyReader(response, events: ServerSentEvents()), call)
      },
      "close": BoundMethod { host, call in
        let (response, _) = try Self(host: host).response(call, "close")
        response.stream?.close()
        return call.answer()
      },
    ]
  }

  /// The values for a generic `for`: the end of the loop closes the iterator.
  private func iterator(_ reader: HTTPBodyReader, _ call: LuaCall) throws -> LuaAnswer {
    let value = try host.vm.value(of: reader, try HTTPTypes.of(host).body)
    return call.answer([value, .nil, .nil, value])
  }

  static var metamethods: LuaFields<BoundMethod> {
    HTTPBindings.metamethods + [
      "__close": BoundMethod { host, call in
        call.object(1, try HTTPTypes.of(host).response)?.stream?.close()
        return call.answer()
      }
    ]
  }

  func response(_ call: LuaCall, _ function: String) throws -> (FlowHTTPResponse, Arguments) {
    let arguments = Arguments(host, call, method: function)
    guard let response = call.object(1, try HTTPTypes.of(host).response) else {
      throw arguments.wrongSelf("response")
    }
    return (response, arguments)
  }

  /// The iterators over a body are objects that can be called.
  static var bodyMetamethods: LuaFields<BoundMethod> {
    HTTPBindings.metamethods + [
      "__call": BoundMethod { host, call in
        guard let reader = call.object(1, try HTTPTypes.of(host).body) else {
          throw Arguments(host, call, method: "__call").wrongSelf("body")
        }
        if reader.isAwaited {
          throw host.usage(call, "bad use of an iterator (another coroutine is waiting in it)")
        }
        return try call.wait(HTTPBodyWait(reader, host))
      },
      "__close": BoundMethod { host, call in
        call.object(1, try HTTPTypes.of(host).body)?.close()
        return call.answer()
      },
    ]
  }
}

/// Reads a body in chunks or events, for a loop of a script.
final class HTTPBodyReader {
  private let response: FlowHTTPResponse
  /// The body of a response that isn't streamed, until it has been read.
  private var whole: ByteString?
  private var events: ServerSentEvents?
  private var ready: [ServerSentEvent] = []
  private var nextReady = 0
  /// Counts the event that isn't complete, if the loop has a meter.
  private var held: HeldBytes?
  private var chunk: ByteString?
  private var hasEnded = false
  private var error: FlowError?

  init(_ response: FlowHTTPResponse, events: ServerSentEvents? = nil) {
    self.response = response
    self.events = events
    whole = response.stream == nil ? response.body : nil
  }

  /// Whether a coroutine waits for the body, with this iterator or another one.
  var isAwaited: Bool {
    guard let wait = response.stream?.wait as? HTTPBodyWait else { return false }
    return wait.problem == nil
  }

  func close() {
    hasEnded = true
    chunk = nil
    events = events.map { _ in ServerSentEvents() }
    held = nil
    response.stream?.close()
  }

  private func take(_ observer: any LoopJob) -> HTTPStream.Part {
    if let stream = response.stream { return stream.take(observer) }
    guard let whole, !whole.isEmpty else { return .end }
    self.whole = nil
    return .bytes(whole)
  }

  /// Takes what has come, and returns whether there is a result; otherwise the observer is run when
  /// more has come.
  func advance(_ observer: any LoopJob, _ host: ScriptHost) -> Bool {
    while true {
      // A chunk or event may be left of a wait that was cancelled.
      if hasEnded || chunk != nil || nextReady < ready.count { return true }
      switch take(observer) {
      case .pending: return false
      case .end: hasEnded = true
      case .failed(let failure):
        hasEnded = true
        error = failure
      case .bytes(let bytes):
        guard events != nil else {
          chunk = bytes
          return true
        }
        ready = events?.add(bytes) ?? []
        nextReady = 0
        if let problem = problemOfEvent(host) {
          close()
          error = problem
        }
      }
    }
  }

  /// Why the event that comes can't be collected; nil when it can.
  private func problemOfEvent(_ host: ScriptHost) -> FlowError? {
    let count = events?.heldCount ?? 0
    if let limit = response.stream?.partLimit, count > limit {
      let url = HTTPTask.shown(response.url)
      return .http(
        host.loop.secrets.redacted(
          "\(url) -> \(response.status): an event has more than \(limit) bytes (max_bytes)"),
        RequestFailure.Response(
          status: response.status, headers: response.headers, body: ""),
        mayRepeat: false)
    }
    guard let meter = host.loop.memoryMeter else { return nil }
    let held = held ?? HeldBytes(meter)
    self.held = held
    return held.set(count).map { _ in FlowError(.memory, LuaVM.memoryError) }
  }

  /// The chunk or event; nil at the end.
  func answer(_ call: LuaCall, _ host: ScriptHost) throws -> LuaAnswer {
    if let chunk {
      self.chunk = nil
      return chunk.bytes.withUnsafeBytes { call.answer(bytes: $0) }
    }
    if nextReady < ready.count {
      let event = try ready[nextReady].table(host.vm)
      nextReady += 1
      return call.answer(.reference(event))
    }
    if let error {
      self.error = nil
      throw host.raise(error)
    }
    return call.answer(.nil)
  }

  /// Notes the wait that takes the next part; nil when it has taken it.
  fileprivate func note(_ wait: HTTPBodyWait?) { response.stream?.wait = wait }

  func forget() { response.stream?.forgetObserver() }
}

extension ServerSentEvent {
  fileprivate func table(_ vm: LuaVM) throws -> LuaReference {
    var fields: [(ByteString, LuaValue)] = [("event", .string(name)), ("data", .string(data))]
    if let id { fields.append(("id", .string(id))) }
    if let retry { fields.append(("retry", .number(Double(retry) / 1000))) }
    return try vm.makeTable(fields: fields)
  }
}

/// Waits for the next chunk or event of a body.
private final class HTTPBodyWait: LuaWait, LoopJob {
  private let reader: HTTPBodyReader
  private let host: ScriptHost

  override var subject: String { "body of a response" }

  init(_ reader: HTTPBodyReader, _ host: ScriptHost) {
    self.reader = reader
    self.host = host
    super.init()
    reader.note(self)
    run()
  }

  func run() {
    // Cancelled meanwhile: what has come is for the next wait.
    guard !isReady else { return }
    if reader.advance(self, host) { ready() }
  }

  override func abandon() { reader.forget() }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    reader.note(nil)
    return try reader.answer(call, host)
  }
}

/// Calls a function of a script with the progress of a request, one call at a time. An error of the
/// function ends the request.
final class HTTPProgress: TaskObserver {
  private let host: ScriptHost
  private let function: LuaReference
  private let origin: UInt64
  /// The run whose code sends the request.
  private weak var sender: Run?
  /// The request; set before it starts.
  var work: HTTPWork?
  private var running: AnyFlowTask?
  /// The progress that came during a call that waits: only the latest counts.
  private var next: (done: Int64, total: Int64?)?

  init(_ host: ScriptHost, _ function: LuaReference, origin: UInt64) {
    self.host = host
    self.function = function
    self.origin = origin
    sender = host.outermostRun as? Run
  }

  func report(_ done: Int64, _ total: Int64?) {
    guard running == nil else {
      next = (done, total)
      return
    }
    guard let function = try? host.vm.uniqueReference(to: function) else { return }
    let arguments: [LuaValue] = [.integer(done), total.map { .integer($0) } ?? .nil]
    let call = host.spawn(for: sender, function, arguments, origin: origin)
    call.markObserved()
    if call.isConcluded {
      check(call)
    } else {
      running = call
      call.observe(self)
    }
  }

  func run() {
    guard let ended = running else { return }
    running = nil
    check(ended)
    if let next, work?.isUnderway == true {
      self.next = nil
      report(next.done, next.total)
    }
  }

  private func check(_ call: AnyFlowTask) {
    if let error = call.error, error.kind != .cancelled { work?.stop(error) }
  }
}
