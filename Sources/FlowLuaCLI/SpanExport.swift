internal import FlowEngine
internal import FlowHTTP
internal import FlowScripting

/// Where `--otlp` writes the spans of all runs: a file, or a collector that gets them by OTLP over HTTP.
enum SpanExport {
  case file(ByteString)
  case collector(url: ByteString)

  /// The option has no value, and the environment names no collector.
  struct NoTarget: Error {}

  /// Reads the value of the option: a path or a URL; without one the collector of the environment.
  init(_ value: ByteString?) throws(NoTarget) {
    if let value {
      self = Self.isURL(value) ? .collector(url: Self.complete(value)) : .file(value)
    } else if let url = Self.variable("ENDPOINT", generic: false) {
      self = .collector(url: url)
    } else if let url = Self.variable("ENDPOINT") {
      self = .collector(url: ByteString(Array(url.bytes.trimmingSlashes)) + "/v1/traces")
    } else {
      throw NoTarget()
    }
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
      ? ByteString(Array(trimmed)) + "/v1/traces" : url
  }

  /// A setting of OpenTelemetry's exporters: that for traces or, if it is allowed, the one for all signals.
  private static func variable(_ name: String, generic: Bool = true) -> ByteString? {
    TraceResource.variable("OTEL_EXPORTER_OTLP_TRACES_\(name)")
      ?? (generic ? TraceResource.variable("OTEL_EXPORTER_OTLP_\(name)") : nil)
  }

  // MARK: Sending

  /// The most bytes of a request; collectors refuse very large ones.
  private static let requestSize = 4_000_000
  /// The most seconds for all requests together, unless the environment says otherwise.
  private static let patience = 10.0

  /// Sends the spans of the runs to a collector; returns the reason of a failure, nil for success. Waits for the
  /// responses.
  static func send(
    _ runs: [RunSpans], _ trace: TraceContext, _ resource: TraceResource, to url: ByteString
  ) -> ByteString? {
    let headers = TraceResource.pairs(variable("HEADERS") ?? "")
    let given = variable("TIMEOUT").flatMap { Double($0.description) }
    let seconds = given.map { $0 > 0 ? min($0 / 1000, 3600) : patience } ?? patience
    // The script's own loop may be in the midst of something.
    let loop = EventLoop()
    defer { loop.shutdown() }
    let end = loop.now().later(by: Int64(seconds * 1e9))
    for text in RunOTLP.texts(of: runs, trace, resource, limit: requestSize) {
      var request = HTTPRequest(url)
      request.method = "POST"
      request.body = .bytes(text, type: "application/json")
      request.headers = headers.map { HTTPHeader($0.name, $0.value, isSecret: true) }
      let left = max(0.001, Double(end - loop.now()) / 1e9)
      request.timeout = left
      request.connectTimeout = left
      do {
        let task = try HTTPTask(request, on: loop)
        task.markObserved()
        task.start()
        _ = loop.run(until: { task.isConcluded })
        if let error = task.error { return error.message }
      } catch let misuse as HTTPMisuse {
        return "\(misuse.field): \(misuse.problem)"
      } catch {
        return FlowError.from(error).message
      }
    }
    return nil
  }
}

extension [UInt8] {
  fileprivate var trimmingSlashes: ArraySlice<UInt8> {
    self[..<((lastIndex { $0 != UInt8(ascii: "/") } ?? -1) + 1)]
  }
}
