internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// Reads the arguments of a request: a URL, a table, or a URL and a table.
struct HTTPRequestReader {
  private let arguments: Arguments
  /// The position of the table, or of the URL alone.
  private let index: Int
  private let url: ByteString?
  private let method: String?
  private let options: Options?
  /// The fields of the request itself, without those of a client.
  private let given: Options?
  /// Whether it reads the table of an op, whose executions make their keys themselves.
  private let isOp: Bool

  /// The fields that every request may have.
  private static let fields: [String] = [
    "query", "headers", "json", "body", "form", "files", "upload", "auth", "timeout",
    "connect_timeout", "idle_timeout", "check", "save", "resume", "max_bytes", "redirects",
    "proxy", "ca", "cert", "key", "insecure", "cookies", "http", "idempotency_key", "progress",
    "stream",
  ]

  /// The fields that a client may have for all its requests, besides its own.
  static let shareable: [String] = [
    "timeout", "connect_timeout", "idle_timeout", "check", "max_bytes", "redirects", "proxy", "ca",
    "cert", "key", "insecure", "http", "idempotency_key", "progress",
  ]

  /// Reads the table of an op: a request, and the key `into`.
  static func op(
    _ arguments: OpArguments
  ) throws -> (reader: HTTPRequestReader, request: FlowHTTPRequest, key: ByteString?) {
    let plain = arguments.plain
    let options = try plain.options(1, known: fields + ["url", "method", "into"])
    if options.has("stream") { throw plain.wrong(1, "unknown field 'stream'") }
    if options.kind("progress") == .function {
      throw options.wrong("progress", expected: "boolean")
    }
    let key = try options.string("into")
    if key?.isEmpty == true { throw plain.wrong(1, "field 'into': a key is a non-empty string") }
    let reader = HTTPRequestReader(ofOp: options, plain)
    return (reader, try reader.request(), key)
  }

  private init(ofOp options: Options, _ arguments: Arguments) {
    self.arguments = arguments
    self.options = options
    given = options
    isOp = true
    method = nil
    url = nil
    index = 1
  }

  /// Reads the fields that a client has for its requests.
  init(_ arguments: Arguments, sharing options: Options) throws {
    self.arguments = arguments
    self.options = options
    given = options
    isOp = false
    method = nil
    url = "http://localhost"
    index = 1
  }

  /// Reads the arguments of a call; `method` is a short form's, whose first argument is the URL,
  /// and `defaults` are the fields of a client, for those that the table doesn't have.
  init(_ arguments: Arguments, method: String?, defaults: Options? = nil) throws {
    self.arguments = arguments
    self.method = method
    isOp = false
    if method != nil || arguments.call.kind(arguments.place(1)) != .table {
      guard let value = try arguments.text(try arguments.call.value(arguments.place(1))),
        !value.isNumber
      else { throw arguments.wrong(1, expected: method == nil ? "string or table" : "string") }
      url = value.text
      if arguments.isNil(2) {
        given = nil
      } else {
        given = try arguments.options(2, known: Self.fields + (method == nil ? ["method"] : []))
      }
      index = given == nil ? 1 : 2
      options = given?.adding(defaults) ?? defaults
    } else {
      url = nil
      let table = try arguments.options(1, known: Self.fields + ["url", "method"])
      given = table
      options = table.adding(defaults)
      index = 1
      if arguments.count > 1 {
        throw arguments.wrong(2, "one table, or a URL and a table expected")
      }
    }
  }

  /// Whether the request has the field itself, not from a client.
  func gives(_ field: ByteString) -> Bool { given?.has(field) == true }

  /// Whether each request gets a key that is made for it.
  var makesKey: Bool {
    if case .boolean(true)? = options?.value("idempotency_key") { true } else { false }
  }

  /// Whether the op shows the progress.
  var reportsProgress: Bool { (try? options?.boolean("progress")) == true }

  /// The function that is called with the progress.
  var progressFunction: LuaReference? {
    options?.kind("progress") == .function ? try? options?.function("progress") : nil
  }

  /// The error of a mistake in the request.
  func wrong(_ misuse: HTTPMisuse) -> any Error {
    let isAlone = misuse.field == "url" && url != nil
    return arguments.wrong(
      isAlone ? 1 : index,
      isAlone ? misuse.problem : "field '\(misuse.field)': \(misuse.problem)")
  }

  private func wrong(_ field: ByteString, _ problem: ByteString) -> any Error {
    arguments.wrong(index, "field '\(field)': \(problem)")
  }

  // MARK: Fields

  /// The fields that are paths of files.
  private static let paths: [ByteString] = ["save", "upload", "ca", "cert", "key"]

  private func checkFiles(_ field: ByteString) throws {
    if !arguments.host.allows(.files) {
      throw wrong(field, "the host of the script allows no files")
    }
  }

  /// The request. A body that is kept in memory is at most as large as the limit of the state.
  func request() throws -> FlowHTTPRequest {
    var request = try unlimitedRequest()
    if request.maxBytes == nil, request.save == nil, !request.streams,
      let limit = arguments.host.vm.memoryLimit
    {
      request.maxBytes = min(limit, FlowHTTPRequest.memoryLimit)
    }
    return request
  }

  private func unlimitedRequest() throws -> FlowHTTPRequest {
    guard let options else {
      return FlowHTTPRequest(url ?? "", method: method.map { ByteString($0.uppercased()) })
    }
    guard let url = try url ?? text("url") else {
      throw options.wrong("url", expected: "string")
    }
    if let field = Self.paths.first(where: { options.has($0) }) { try checkFiles(field) }
    let method = try self.method.map { ByteString($0) } ?? options.string("method")
    var request = FlowHTTPRequest(url, method: method.map { $0.uppercased })
    request.query = try pairs("query").map { ($0.name, $0.value.text) }
    request.headers = try headers(arguments, options)
    request.body = try body()
    request.authorization = try options.authorization(arguments)
    request.timeout = try options.duration("timeout", orZero: false)
    request.connectTimeout = try options.duration("connect_timeout", orZero: false) ?? .seconds(10)
    request.idleTimeout = try options.duration("idle_timeout", orZero: false) ?? .seconds(60)
    request.isChecked = try options.boolean("check") ?? true
    request.save = try options.string("save")
    request.resumes = try options.boolean("resume") ?? false
    request.maxBytes = try options.count("max_bytes")
    if let limit = request.maxBytes, limit > 1 << 53 {
      throw wrong("max_bytes", "at most 2^53 expected")
    }
    if let redirects = try options.number(
      "redirects", "an integer from 0 to 1000",
      { $0 >= 0 && $0 <= 1000 && $0 == $0.rounded() })
    {
      request.redirects = Int(redirects)
    }
    request.proxy = try proxy()
    request.ca = try options.string("ca")
    request.certificate = try options.string("cert")
    request.key = try options.string("key")
    request.isInsecure = try options.boolean("insecure") ?? false
    request.cookies = try jar()
    request.version = try version()
    request.idempotencyKey = try idempotencyKey()
    if options.kind("progress") != .function, options.has("progress") {
      guard case .boolean? = options.value("progress") else {
        throw options.wrong("progress", expected: "boolean or function")
      }
    }
    request.streams = try options.boolean("stream") ?? false
    return request
  }

  private func text(_ field: ByteString) throws -> ByteString? {
    guard let value = options?.value(field) else { return nil }
    guard let text = try arguments.text(value), !text.isNumber else {
      throw options?.wrong(field, expected: "string") ?? wrong(field, "string expected")
    }
    return text.text
  }

  /// Names and values of a table, in the order of the names; a list has its name for each element.
  private func pairs(_ field: ByteString) throws -> [(name: ByteString, value: HTTPText)] {
    try options?.namedTexts(field) { wrong(field, $0) } ?? []
  }

  private func proxy() throws -> ByteString? {
    if case .boolean(false)? = options?.value("proxy") { return "" }
    return try text("proxy")
  }

  private func jar() throws -> HTTPCookieJar? {
    guard let options, let value = options.value("cookies") else { return nil }
    guard let jar = arguments.host.vm.object(in: value, try HTTPTypes.of(arguments.host).jar) else {
      throw options.wrong("cookies", expected: "jar of flow.http.jar()")
    }
    return jar
  }

  private func version() throws -> FlowHTTPRequest.Version? {
    switch try options?.string("http") {
    case nil: return nil
    case "1.1": return .http1
    case "2": return .http2
    case let other?: throw wrong("http", "\"1.1\" or \"2\" expected, got \"\(other)\"")
    }
  }

  private func idempotencyKey() throws -> ByteString? {
    switch options?.value("idempotency_key") {
    case nil, .boolean(false): return nil
    case .boolean(true): return isOp ? nil : IdempotencyKeys.make(for: arguments.host.currentOp)
    default: return try text("idempotency_key")
    }
  }

  // MARK: Bodies

  private func body() throws -> FlowHTTPRequest.Body? {
    guard let options else { return nil }
    let groups = [["json"], ["body"], ["form", "files"], ["upload"]]
    let given = groups.compactMap { names in names.first { options.has($0) } }
    if given.count > 1 {
      throw wrong(given[1], "the request has a body already, by '\(given[0])'")
    }
    if let text = try bodyText() { return .bytes(text, type: nil) }
    if let value = options.value("json") {
      do {
        let (text, _) = try arguments.host.vm.encodeJSON(value)
        return .bytes(text, type: "application/json")
      } catch let error as JSONValueError {
        throw wrong("json", error.message)
      }
    }
    if options.has("upload") { return try upload(options) }
    if options.has("files") {
      let fields = try pairs("form").map { HTTPPart($0.name, .bytes($0.value.text)) }
      return .parts(fields + (try files()))
    }
    guard options.has("form") else { return nil }
    let encoded = try pairs("form").map {
      "\($0.name.percentEncoded)=\($0.value.text.percentEncoded)" as ByteString
    }
    let text = encoded.dropFirst().reduce(encoded.first ?? "") { $0 + "&" + $1 }
    return .bytes(text, type: "application/x-www-form-urlencoded")
  }

  /// The path of a file, or `{ path = …, from = …, size = … }`.
  private func upload(_ options: Options) throws -> FlowHTTPRequest.Body {
    let parts =
      options.kind("upload") == .table
      ? try options.table("upload").map {
        try Options(
          arguments, index, arguments.host.vm.pairs(of: $0), ["path", "from", "size"], of: "upload")
      } : nil
    guard let path = try parts.map({ try $0.string("path") }) ?? options.string("upload") else {
      throw wrong("upload.path", "string expected, got nil")
    }
    if path.bytes.contains(0) { throw wrong("upload", "a NUL byte in the path") }
    return .file(
      path, from: Int64(try parts?.count("from", least: 0) ?? 0),
      size: try parts?.count("size", least: 0).map { Int64($0) })
  }

  private func bodyText() throws -> ByteString? {
    guard let value = options?.value("body") else { return nil }
    guard let text = try arguments.text(value), !text.isNumber else {
      throw options?.wrong("body", expected: "string") ?? wrong("body", "string expected")
    }
    return text.text
  }

  private func files() throws -> [HTTPPart] {
    let vm = arguments.host.vm
    guard let table = try options?.table("files") else { return [] }
    var parts: [HTTPPart] = []
    let pairs = try vm.pairs(of: table).map { key, value in
      guard case .string(let name) = key else {
        throw wrong("files", "names are strings, got a key of type \(vm.typeName(of: key))")
      }
      return (name, value)
    }
    for (name, value) in pairs.sorted(by: { $0.0 < $1.0 }) {
      if case .reference(let list) = value, let count = vm.listCount(list), count > 0 {
        for place in 1...count { parts.append(try file(name, try vm.element(place, of: list))) }
      } else {
        parts.append(try file(name, value))
      }
    }
    return parts
  }

  /// `{ path = …, type = …, name = … }`, or the bytes of a file.
  private func file(_ name: ByteString, _ value: LuaValue) throws -> HTTPPart {
    if let text = try arguments.text(value), !text.isNumber {
      return HTTPPart(name, .bytes(text.text), fileName: name)
    }
    let host = arguments.host
    guard case .reference(let table) = value, table.kind == .table else {
      throw wrong("files", "'\(name)': string or table expected, got \(host.kindName(of: value))")
    }
    let fields = try Options(
      arguments, index, try host.vm.pairs(of: table), ["path", "body", "type", "name"],
      of: "files.\(name)")
    let path = try fields.string("path")
    let bytes = try fields.string("body")
    let (type, fileName) = (try fields.string("type"), try fields.string("name"))
    for text in [path, type, fileName] where text?.hasLineEnd == true {
      throw wrong("files", "'\(name)': a line end or NUL byte in it")
    }
    switch (path, bytes) {
    case (let path?, nil):
      try checkFiles("files")
      return HTTPPart(name, .file(path), type: type, fileName: fileName)
    case (nil, let bytes?):
      return HTTPPart(name, .bytes(bytes), type: type, fileName: fileName ?? name)
    default: throw wrong("files", "'\(name)': either 'path' or 'body' expected")
    }
  }
}

/// A value of a request as text.
struct HTTPText {
  let text: ByteString
  /// Whether the script gave it as a secret.
  var isSecret = false
  var isNumber = false
}

extension HTTPRequestReader {
  /// The header lines of a request or a client.
  func headers(_ arguments: Arguments, _ options: Options) throws -> [HTTPHeader] {
    try options.namedTexts("headers") { wrong("headers", $0) }.map {
      HTTPHeader($0.name, $0.value.text, isSecret: $0.value.isSecret)
    }
  }
}

extension Arguments {
  /// A string, number, boolean or secret as text; nil for anything else.
  func text(_ value: LuaValue) throws -> HTTPText? {
    switch value {
    case .string(let text): return HTTPText(text: text)
    case .integer(let number):
      return HTTPText(text: FlowValue.integer(number).logText, isNumber: true)
    case .number(let number):
      return HTTPText(text: FlowValue.number(number).logText, isNumber: true)
    case .reference:
      guard let secret = host.secret(in: value) else { return nil }
      switch secret.plain {
      case .bytes, .integer, .number:
        let text = secret.plain.logText
        host.loop.secrets.addPercentEncoded(text)
        return HTTPText(text: text, isSecret: true)
      default: return nil
      }
    default: return nil
    }
  }
}

extension Options {
  /// The texts of a table with string keys, in the order of the keys; a list has its name for each
  /// element.
  func namedTexts(
    _ field: ByteString, _ wrong: (ByteString) -> any Error
  ) throws -> [(name: ByteString, value: HTTPText)] {
    guard let table = try table(field) else { return [] }
    let host = arguments.host
    var found: [(name: ByteString, value: HTTPText)] = []
    for (key, value) in try host.vm.pairs(of: table) {
      guard case .string(let name) = key else {
        throw wrong("names are strings, got a key of type \(host.vm.typeName(of: key))")
      }
      var values = [value]
      if case .reference(let list) = value, list.kind == .table, let count = host.vm.listCount(list)
      {
        values = try (0..<count).map { try host.vm.element($0 + 1, of: list) }
        if count == 0, field == "headers" { throw wrong("'\(name)': an empty list") }
      }
      for each in values {
        if case .boolean(let flag) = each {
          found.append((name, HTTPText(text: flag ? "true" : "false")))
        } else if let text = try arguments.text(each) {
          found.append((name, text))
        } else {
          throw wrong(
            "'\(name)': string, number, boolean, secret or a list of them expected, "
              + "got \(host.kindName(of: each))")
        }
      }
    }
    // Stable, so that a list keeps its order.
    return found.enumerated().sorted {
      ($0.element.name, $0.offset) < ($1.element.name, $1.offset)
    }.map(\.element)
  }

  /// `auth`: a token, or `{ user = …, password = … }`.
  func authorization(_ arguments: Arguments) throws -> FlowHTTPRequest.Authorization? {
    guard let value = value("auth") else { return nil }
    if let token = try arguments.text(value), !token.isNumber { return .bearer(token.text) }
    guard case .reference(let table) = value, table.kind == .table else {
      throw self.wrong("auth", expected: "secret, string or table")
    }
    let fields = try Options(
      arguments, index, try arguments.host.vm.pairs(of: table), ["user", "password"], of: "auth")
    func text(_ name: ByteString) throws -> ByteString {
      guard let text = try arguments.text(fields.value(name) ?? .nil) else {
        throw fields.wrong(name, expected: "string or secret")
      }
      return text.text
    }
    return .basic(user: try text("user"), password: try text("password"))
  }
}
