internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// Responds to the requests of a test, by a function of the script or by a table of responses.
final class TestRequests: HTTPReplacement {
  /// Where responses come from.
  enum Source {
    case function(LuaReference)
    /// By `METHOD URL`; a response is a value or a function.
    case routes([ByteString: LuaValue])
  }

  private let host: ScriptHost
  private let source: Source
  /// The calls for requests that haven't ended.
  private var calls: [ObjectIdentifier: ReplacedCall] = [:]
  private var delays: [ObjectIdentifier: LoopTimer] = [:]

  init(_ host: ScriptHost, _ source: Source) {
    self.host = host
    self.source = source
  }

  func problem(with method: ByteString, _ url: ByteString) -> ByteString? {
    response(to: method, url) == nil ? RefusedRequests.problem(with: method, url) : nil
  }

  /// The value that responds to a request: its URL's, else the one of its URL without the query.
  private func response(to method: ByteString, _ url: ByteString) -> LuaValue? {
    switch source {
    case .function(let function): return .reference(function)
    case .routes(let routes):
      let plain = ByteString(url.bytes.prefix { $0 != UInt8(ascii: "?") })
      return routes["\(method) \(url)"] ?? routes["\(method) \(plain)"]
    }
  }

  func start(_ request: ReplacedRequest) {
    let id = ObjectIdentifier(request)
    guard let response = response(to: request.method, request.url) else {
      return request.fail(.usage(RefusedRequests.problem(with: request.method, request.url)))
    }
    guard case .reference(let function) = response, function.kind == .function else {
      return respond(to: request, .success(response))
    }
    do {
      let argument = LuaValue.reference(try table(of: request))
      calls[id] = try ReplacedCall(host, function, [argument]) { [weak self] result in
        self?.calls[id] = nil
        self?.respond(to: request, result)
      }
    } catch {
      request.fail(host.flowError(thrown: error, op: nil))
    }
  }

  func cancel(_ request: ReplacedRequest, _ error: FlowError) {
    let id = ObjectIdentifier(request)
    delays.removeValue(forKey: id)?.cancel()
    calls.removeValue(forKey: id)?.cancel(error)
  }

  /// The request as a table.
  private func table(of request: ReplacedRequest) throws -> LuaReference {
    var headers: [ByteString: ByteString] = [:]
    for (name, value) in request.headers {
      let name = name.lowercased
      headers[name] = headers[name].map { "\($0), \(value)" } ?? value
    }
    let headerFields = headers.map { ($0.key, LuaValue.string($0.value)) }
    var fields: [(ByteString, LuaValue)] = [
      ("method", .string(request.method)), ("url", .string(request.url)),
      ("headers", .reference(try host.vm.makeTable(fields: headerFields))),
    ]
    if case .basic(let user, let password)? = request.credentials {
      let auth = try host.vm.makeTable(
        fields: [("user", .string(user)), ("password", .string(password))])
      fields.append(("auth", .reference(auth)))
    }
    if request.hasBody {
      switch request.request.body {
      case .bytes(let bytes, _): fields.append(("body", .string(bytes)))
      case .file(let path, 0, nil): fields.append(("upload", .string(path)))
      case .file(let path, let first, let size):
        let part: [(ByteString, LuaValue)] = [
          ("path", .string(path)), ("from", .integer(first)),
          ("size", size.map { .integer($0) } ?? .nil),
        ]
        fields.append(("upload", .reference(try host.vm.makeTable(fields: part))))
      case .parts(let parts):
        let list = try parts.map { LuaValue.reference(try table(of: $0)) }
        fields.append(("parts", .reference(try host.vm.makeTable(values: list))))
      case nil: break
      }
    }
    return try host.vm.makeTable(fields: fields)
  }

  private func table(of part: HTTPPart) throws -> LuaReference {
    var fields: [(ByteString, LuaValue)] = [("name", .string(part.name))]
    switch part.content {
    case .bytes(let bytes): fields.append(("body", .string(bytes)))
    case .file(let path): fields.append(("path", .string(path)))
    }
    if let type = part.type { fields.append(("type", .string(type))) }
    if let name = part.fileName { fields.append(("filename", .string(name))) }
    return try host.vm.makeTable(fields: fields)
  }

  // MARK: Responses

  private func respond(to request: ReplacedRequest, _ returned: Result<LuaValue, FlowError>) {
    do {
      let response = try TestResponse(try returned.get(), host) { problem in
        .usage(
          "the option 'http' of testing.run, for \(request.method) \(HTTPTask.shown(request.url)): "
            + problem)
      }
      guard response.delay > .zero else {
        // Never before the request has been started wholly.
        return host.loop.enqueue { [self] in deliver(response, request) }
      }
      let id = ObjectIdentifier(request)
      let phase = response.phase ?? .wait
      let patience = request.patience(in: phase)
      delays[id] = host.loop.schedule(after: min(response.delay, patience)) {
        [weak self] in
        self?.delays[id] = nil
        if response.delay > patience { return request.fail(request.timeout(in: phase)) }
        self?.deliver(response, request)
      }
    } catch {
      request.fail(host.flowError(thrown: error, op: nil))
    }
  }

  private func deliver(_ response: TestResponse, _ request: ReplacedRequest) {
    if let phase = response.phase { return request.fail(request.failure(in: phase)) }
    request.respond(status: response.status, headers: response.headers, body: response.body)
  }
}

/// A response as a script describes it: a body, or a table.
private struct TestResponse {
  private(set) var status = 200
  private(set) var headers: [(name: ByteString, value: ByteString)] = []
  private(set) var body: ByteString = ""
  private(set) var delay = Duration.zero
  /// The phase in which the request breaks instead.
  private(set) var phase: RequestFailure.Phase?

  init(
    _ value: LuaValue, _ host: ScriptHost, _ wrong: (ByteString) -> FlowError
  ) throws {
    if case .string(let text) = value {
      body = text
      return
    }
    if case .nil = value { throw wrong("nothing was returned, so it isn't replaced") }
    guard case .reference(let table) = value, table.kind == .table else {
      throw wrong("table or string expected, got \(host.kindName(of: value))")
    }
    var hasBody = false
    for (key, value) in try host.vm.pairs(of: table) {
      let shown = host.loop.secrets.redacted(FlowValue(value).logText).truncated(
        to: FlowValue.logLimit)
      switch (key, value) {
      case (.string("status"), .integer(let number)) where (200...599).contains(number):
        status = Int(number)
      case (.string("status"), _):
        throw wrong("field 'status': integer from 200 to 599 expected, got \(shown)")
      case (.string("delay"), .integer(let seconds)) where seconds >= 0:
        delay = Duration(clampingSeconds: Double(seconds))
      case (.string("delay"), .number(let seconds)) where seconds.isFinite && seconds >= 0:
        delay = Duration(clampingSeconds: seconds)
      case (.string("delay"), _):
        throw wrong(
          "field 'delay': a finite number of seconds, at least 0, expected, got \(shown)")
      case (.string("phase"), .string(let name)):
        phase = RequestFailure.Phase(rawValue: name.description)
        if phase == nil { throw wrong("field 'phase': there is no phase '\(shown)'") }
      case (.string("headers"), .reference(let table)) where table.kind == .table:
        headers += try Self.headers(host, table, wrong)
      case (.string("body"), .string(let text)):
        if hasBody { throw wrong("fields 'body' and 'json': only one of them") }
        hasBody = true
        body = text
      case (.string("json"), _):
        if hasBody { throw wrong("fields 'body' and 'json': only one of them") }
        hasBody = true
        do {
          body = try host.vm.encodeJSON(value).text
        } catch let error as JSONValueError {
          throw wrong("field 'json': \(error.message)")
        }
      case (.string(let name), _) where ["body", "headers", "phase"].contains(name):
        let expected = name == "headers" ? "table" : "string"
        throw wrong("field '\(name)': \(expected) expected, got \(host.kindName(of: value))")
      default:
        throw wrong(
          "unknown field '\(FlowValue(key).logText)'; known are 'body', 'delay', 'headers', 'json', "
            + "'phase', 'status'")
      }
    }
    let isJSON = try !host.vm.field("json", of: table).isNil
    if isJSON, !headers.contains(where: { $0.name.lowercased == "content-type" }) {
      headers.append(("content-type", "application/json"))
    }
  }

  /// The lines of a header: a value is text, a number, or a list of them.
  private static func headers(
    _ host: ScriptHost, _ table: LuaReference, _ wrong: (ByteString) -> FlowError
  ) throws -> [(name: ByteString, value: ByteString)] {
    var lines: [(name: ByteString, value: ByteString)] = []
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let name) = key, !name.isEmpty, !name.hasLineEnd else {
        throw wrong("field 'headers': names of headers are strings")
      }
      var values = [value]
      if case .reference(let list) = value, list.kind == .table,
        let count = host.vm.listCount(list)
      {
        values = try (0..<count).map { try host.vm.element($0 + 1, of: list) }
      }
      for value in values {
        switch value {
        case .string(let text) where !text.hasLineEnd: lines.append((name, text))
        case .integer, .number: lines.append((name, FlowValue(value).logText))
        default: throw wrong("field 'headers', '\(name)': text without line ends expected")
        }
      }
    }
    return lines.sorted { $0.name < $1.name }
  }
}

/// Refuses the requests of a test.
final class RefusedRequests: HTTPReplacement {
  private let isWorker: Bool

  /// - Parameter isWorker: Whether the refused requests are those of a worker, where code of the
  ///   test can't be called.
  init(isWorker: Bool) {
    self.isWorker = isWorker
  }

  func problem(with method: ByteString, _ url: ByteString) -> ByteString? {
    Self.problem(with: method, url, isWorker: isWorker)
  }

  static func problem(
    with method: ByteString, _ url: ByteString, isWorker: Bool = false
  ) -> ByteString {
    let hint: ByteString =
      isWorker
      ? "let its op run on the main thread there, or pass http = \"real\" to testing.run"
      : "pass http = { [\"\(method) …\"] = response }, a function, or \"real\" to testing.run"
    return "\(method) \(HTTPTask.shown(url)) isn't replaced in this test: \(hint)"
  }

  func start(_ request: ReplacedRequest) {
    request.fail(.usage(problem(with: request.method, request.url) ?? ""))
  }

  func cancel(_ request: ReplacedRequest, _ error: FlowError) {}
}
