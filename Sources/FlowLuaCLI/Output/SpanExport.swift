internal import FlowEngine
internal import FlowHTTP
internal import FlowScripting
internal import FlowSystem

/// Where `--otlp` writes the spans of all runs: a file, or a collector that gets them by OTLP over HTTP.
enum SpanExport {
  case file(ByteString)
  case collector(url: ByteString)

  /// The value of the option is wrong.
  struct Misuse: Error {
    let message: ByteString
  }

  /// Reads the value of the option: a path or a URL; without one the collector of the environment.
  init(_ value: ByteString?) throws(Misuse) {
    if let value {
      if Self.isURL(value) {
        self = .collector(url: Self.complete(value))
      } else if let place = value.bytes.place(of: "://"),
        !value.bytes[..<place.lowerBound].contains(UInt8(ascii: "/"))
      {
        throw Misuse(
          message:
            "option '--otlp' needs a URL that begins with http:// or https://, not '\(value)'")
      } else if let problem = Self.problem(replacing: value) {
        throw Misuse(message: "option '--otlp': \(problem)")
      } else {
        self = .file(value)
      }
    } else if let url = Self.variable("ENDPOINT", generic: false) {
      self = .collector(url: url)
    } else if let url = Self.variable("ENDPOINT") {
      self = .collector(url: ByteString(url.bytes.trimmingSlashes) + "/v1/traces")
    } else {
      throw Misuse(
        message:
          "option '--otlp' needs a file or URL (--otlp=FILE), or OTEL_EXPORTER_OTLP_ENDPOINT in "
          + "the environment")
    }
  }

  /// Why the spans don't replace a file.
  static func problem(replacing path: ByteString) -> ByteString? {
    path == "-" ? nil : SpanFile.problem(replacing: path)
  }

  private static func isURL(_ text: ByteString) -> Bool {
    let scheme = text.description.prefix(8).lowercased()
    return scheme.hasPrefix("http://") || scheme == "https://"
  }

  /// A URL without a path gets the one that collectors have.
  private static func complete(_ url: ByteString) -> ByteString {
    let trimmed = url.bytes.trimmingSlashes
    let slashes = trimmed.filter { $0 == UInt8(ascii: "/") }.count
    return slashes == 2 && !trimmed.contains(UInt8(ascii: "?"))
      ? ByteString(trimmed) + "/v1/traces" : url
  }

  /// A setting of OpenTelemetry's exporters: that for traces or, if it is allowed, the one for all signals.
  private static func variable(_ name: String, generic: Bool = true) -> ByteString? {
    environment("OTEL_EXPORTER_OTLP_TRACES_\(name)")
      ?? (generic ? environment("OTEL_EXPORTER_OTLP_\(name)") : nil)
  }

  // MARK: Sending

  /// The most bytes of a request; collectors refuse very large ones.
  private static let requestSize = 4_000_000
  /// The most seconds for all requests together, unless the environment says otherwise.
  private static let patience = 10.0
  /// The most seconds after a signal that ends the script.
  private static let patienceAfterSignal = 2.0

  /// Whether `OTEL_SDK_DISABLED` forbids to send anything.
  private static var isDisabled: Bool {
    environment("OTEL_SDK_DISABLED")?.description.lowercased() == "true"
  }

  /// Sends the spans of the runs to a collector; returns the reason of a failure, nil for success. Waits for the
  /// responses.
  static func send(
    _ runs: [RunSpans], _ trace: TraceContext, _ resource: TraceResource, to url: ByteString
  ) -> ByteString? {
    if isDisabled { return nil }
    let headers = TraceResource.pairs(variable("HEADERS") ?? "")
    let given = variable("TIMEOUT").flatMap { Double($0.description) }
    var seconds = given.map { $0 > 0 ? min($0 / 1000, 3600) : patience } ?? patience
    if flowsystem_was_asked_to_end() { seconds = min(seconds, patienceAfterSignal) }
    // The script's own loop may be in the midst of something.
    let loop = FlowEventLoop()
    defer { loop.shutdown() }
    let end = loop.now().later(by: Int64(seconds * 1e9))
    var rejected: UInt64 = 0
    for text in RunOTLP.texts(of: runs, trace, resource, limit: requestSize) {
      var request = FlowHTTPRequest(literal(url))
      request.method = "POST"
      request.body = .bytes(text, type: "application/json")
      request.headers = headers.map { HTTPHeader($0.name, $0.value, isSecret: true) }
      let left = max(.milliseconds(1), Duration.nanoseconds(end - loop.now()))
      request.keepsMethod = true
      request.connectTimeout = left
      do {
        let body = try send(request, until: end, on: loop)
        if let count = rejectedCount(in: body) {
          rejected = rejected.addingReportingOverflow(count).partialValue
        }
      } catch let misuse as HTTPMisuse {
        return "\(misuse.field): \(misuse.problem)"
      } catch {
        return FlowError.from(error).message
      }
    }
    return rejected == 0 ? nil : "the collector has rejected \(rejected) of them"
  }

  /// Sends a request, and again while the collector is busy; returns the body of the response.
  private static func send(
    _ request: FlowHTTPRequest, until end: Int64, on loop: FlowEventLoop
  ) throws -> ByteString {
    var body: ByteString = ""
    var attempts = 1
    let policy = RetryPolicy(
      attempts: mostAttempts, delay: firstDelay, factor: 2, jitter: 0.2,
      when: { error, attempt in
        // No wait that would be in vain.
        let grown = firstDelay * (1 << (attempt - 1)) * 1.2
        let wait = max(error.retryAfter ?? .zero, grown)
        return isBusy(error) && .nanoseconds(end - SystemClock().now()) > wait
      })
    let op = try HTTPOp(
      request, into: "body",
      convert: { response in
        body = response.body
        return .bytes(body)
      }
    ).makeOp()
    let left = max(.milliseconds(1), Duration.nanoseconds(end - loop.now()))
    let run = Flow("export").add(op.with(retry: policy)).with(timeout: left).start(on: loop)
    run.markObserved()
    _ = loop.turn(until: { run.isConcluded })
    for event in run.events where event.kind == .retry { attempts = event.attempt + 1 }
    guard let error = run.error else { return body }
    if attempts == 1 { throw error }
    throw FlowError(error.kind, "\(error.message), after \(attempts) attempts")
  }

  /// The most attempts at a request, and the time before the second one; each further delay is twice as long,
  /// unless the collector asks for a longer one.
  private static let mostAttempts = 5
  private static let firstDelay = Duration.milliseconds(250)

  /// Whether OTLP has a request sent again: the collector was busy, or has closed the connection without a response.
  /// A collector that doesn't listen at all isn't awaited.
  private static func isBusy(_ error: FlowError) -> Bool {
    switch error.request {
    case .response(let response): [429, 502, 503, 504].contains(response.status)
    case .connection(let phase, _): error.kind == .network && (phase == .send || phase == .wait)
    case nil: false
    }
  }

  /// A URL in which braces are no keys of data.
  private static func literal(_ url: ByteString) -> ByteString {
    ByteString(
      url.bytes.flatMap { byte in
        switch byte {
        case UInt8(ascii: "{"): "%7B".bytes
        case UInt8(ascii: "}"): "%7D".bytes
        default: [byte]
        }
      })
  }

  /// How many spans a response says to be rejected; nil for none. A reader of JSON needs a state of Lua, which may
  /// have ended.
  private static func rejectedCount(in body: ByteString) -> UInt64? {
    guard let place = body.bytes.place(of: "\"rejectedSpans\"") else { return nil }
    let marks = Set(" \t\r\n:\"".bytes)
    let digits = body.bytes[place.upperBound...].drop { marks.contains($0) }
      .prefix(while: \.isDigit)
    return UInt64(String(decoding: digits, as: UTF8.self)).flatMap { $0 > 0 ? $0 : nil }
  }
}

extension [UInt8] {
  fileprivate var trimmingSlashes: ArraySlice<UInt8> {
    self[..<((lastIndex { $0 != UInt8(ascii: "/") } ?? -1) + 1)]
  }
}
