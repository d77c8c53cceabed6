public import FlowEngine

/// Sends a request: needs the names in braces in its URL, and may give the body.
///
/// `HTTPOp(FlowHTTPRequest("https://api.example/users/{name}"), into: "page")` needs `name` and gives
/// `page`. The values are encoded for the URL. With `save` it gives the path of the file.
///
/// ```swift
/// let fetch = try HTTPOp(FlowHTTPRequest("https://shop.example/items/{id}"), into: "item")
/// let run = fetch.start(on: loop, data: ["id": 7])
/// ```
public struct HTTPOp: OpConvertible {
  /// The description of such ops, for people.
  package static let docText = "Sends a request: needs the names in braces, gives its 'into'."

  private let op: Op

  /// Makes an op that sends a request.
  ///
  /// - Parameters:
  ///   - request: The request; names in braces in its URL are keys of the data bucket.
  ///   - key: The key that gets the body; nil for none.
  ///   - showsProgress: Whether the progress of the transfer is the op's.
  ///   - makeKey: Makes the idempotency key of each attempt's request; nil for the key of `request`. The
  ///     key should be the same in all attempts of an execution, and another in the next one.
  ///   - convert: Makes the value of a body; by default its bytes.
  /// - Throws: The mistake in the request.
  public init(
    _ request: FlowHTTPRequest, into key: (any FlowText)? = nil, showsProgress: Bool = false,
    makeKey: ((OpContext) -> any FlowText)? = nil,
    convert: @escaping (FlowHTTPResponse) throws -> FlowValue = { .bytes($0.body) }
  ) throws {
    try self.init(
      request, into: key?.byteString, requester: nil, showsProgress: showsProgress,
      makeKey: makeKey.map { makeKey in { makeKey($0).byteString } }, convert: convert)
  }

  /// Makes one for a part of the program, which `requester` identifies.
  package init(
    _ request: FlowHTTPRequest, into key: ByteString?, requester: ObjectIdentifier?,
    showsProgress: Bool = false, makeKey: ((OpContext) -> ByteString)? = nil,
    convert: @escaping (FlowHTTPResponse) throws -> FlowValue = { .bytes($0.body) }
  ) throws {
    if let misuse = request.misuse { throw misuse }
    let pieces = try HTTPTemplate(request.url)
    let any = try FlowValueType.parse("any")
    op = Op(
      name: "HTTPOp", doc: Self.docText,
      needs: pieces.names.map { Declaration($0, any) },
      gives: key.map { [Declaration($0, any)] } ?? [],
      body: HTTPOpBody(request, pieces, key, requester, showsProgress, makeKey, convert))
  }

  public func makeOp() -> Op { op }
}

/// A URL with names in braces.
struct HTTPTemplate {
  private var texts: [ByteString] = []
  /// The names in order; one may occur twice.
  private var places: [ByteString] = []

  init(_ url: ByteString) throws(HTTPMisuse) {
    var rest = url.bytes[...]
    while let open = rest.firstIndex(of: UInt8(ascii: "{")) {
      let after = rest[(open + 1)...]
      guard let close = after.firstIndex(of: UInt8(ascii: "}")), close > open + 1 else {
        throw HTTPMisuse(field: "url", problem: "a name in braces expected, such as {name}")
      }
      texts.append(ByteString(rest[..<open]))
      places.append(ByteString(rest[(open + 1)..<close]))
      rest = rest[(close + 1)...]
    }
    texts.append(ByteString(rest))
  }

  /// Each name once, in order.
  var names: [ByteString] {
    var names: [ByteString] = []
    for name in places where !names.contains(name) { names.append(name) }
    return names
  }

  /// The URL with the values of the names. A value `.` or `..` is refused: as a part of a path it
  /// would lead elsewhere, encoded or not.
  func url(_ value: (ByteString) throws(FlowError) -> ByteString) throws(FlowError) -> ByteString {
    var url = texts[0]
    for (place, text) in zip(places, texts.dropFirst()) {
      let part = try value(place)
      if part == "." || part == ".." {
        throw FlowError(.error, "<\(place)> is '\(part)', which can't be a part of a URL")
      }
      url = url + part.percentEncoded + text
    }
    return url
  }
}

private final class HTTPOpBody: OpBody {
  private let request: FlowHTTPRequest
  private let template: HTTPTemplate
  private let key: ByteString?
  private let requester: ObjectIdentifier?
  private let showsProgress: Bool
  private let makeKey: ((OpContext) -> ByteString)?
  private let convert: (FlowHTTPResponse) throws -> FlowValue

  init(
    _ request: FlowHTTPRequest, _ template: HTTPTemplate, _ key: ByteString?,
    _ requester: ObjectIdentifier?, _ showsProgress: Bool,
    _ makeKey: ((OpContext) -> ByteString)?,
    _ convert: @escaping (FlowHTTPResponse) throws -> FlowValue
  ) {
    self.request = request
    self.template = template
    self.key = key
    self.requester = requester
    self.showsProgress = showsProgress
    self.makeKey = makeKey
    self.convert = convert
  }

  func start(_ context: OpContext) -> CallState {
    do {
      var request = request
      request.url = try template.url { name throws(FlowError) in try Self.text(name, context) }
      if let makeKey { request.idempotencyKey = makeKey(context) }
      if showsProgress {
        request.onProgress = { context.progress(Double($0), of: $1.map { Double($0) }) }
      }
      let task = try HTTPTask(
        request, requester: requester, at: context.workPlace, on: context.loop)
      task.onLine = { context.log($0) }
      context.state = task
      task.observe(HTTPOpObserver(task) { [self] task in ended(task, context) })
      task.start()
    } catch {
      let misuse = error as? HTTPMisuse
      context.fail(misuse.map { .usage("\($0.field): \($0.problem)") } ?? .from(error))
      return .finished
    }
    return .suspended
  }

  /// The content of the request and the use of the response; not how long it may take, nor by which way.
  func codeForm() -> CodeForm? {
    var writer = CodeFormWriter("HTTPOp")
    writer.add(request.url)
    writer.add(request.effectiveMethod)
    writer.add(request.query.count)
    for (name, value) in request.query {
      writer.add(name)
      writer.add(value)
    }
    writer.add(request.headers.count)
    for header in request.headers {
      writer.add(header.name)
      writer.add(header.value)
    }
    request.body?.add(to: &writer)
    switch request.authorization {
    case .bearer(let token):
      writer.add("bearer")
      writer.add(token)
    case .basic(let user, let password):
      writer.add("basic")
      writer.add(user)
      writer.add(password)
    case nil: writer.add("none")
    }
    writer.add(request.isChecked)
    writer.add(request.save)
    writer.add(request.resumes)
    writer.add(request.maxBytes ?? -1)
    writer.add(request.redirects)
    writer.add(request.idempotencyKey)
    writer.add(makeKey != nil)
    writer.add(key)
    return writer.form()
  }

  private func ended(_ task: HTTPTask, _ context: OpContext) {
    task.markObserved()
    guard let response = task.result else { return context.end(task.error) }
    do {
      if let key {
        context.set(
          context.bucket.keys.intern(key),
          try response.saved.map { .bytes($0) } ?? convert(response))
      }
      context.end()
    } catch {
      context.end(.from(error))
    }
  }

  /// The value of a key as text.
  private static func text(
    _ name: ByteString, _ context: OpContext
  ) throws(FlowError) -> ByteString {
    let key = context.loop.keys.intern(name)
    let value = try context.require(key, nil).get()
    switch value.plain {
    case .bytes, .integer, .number, .boolean:
      let text = value.plain.logText
      if value.isSecret || context.bucket.isSecret(key) {
        context.loop.secrets.addPercentEncoded(text)
      }
      return text
    default:
      throw .mismatchedInput(name, value, wanted: "string or number", hiding: context.loop.secrets)
    }
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? HTTPTask)?.stopWork(error)
  }
}

extension FlowHTTPRequest.Body {
  /// Adds the body to the form of an op's code.
  fileprivate func add(to writer: inout CodeFormWriter) {
    switch self {
    case .bytes(let bytes, let type):
      writer.add("bytes")
      writer.add(bytes)
      writer.add(type)
    case .parts(let parts):
      writer.add("parts")
      writer.add(parts.count)
      for part in parts {
        writer.add(part.name)
        switch part.content {
        case .bytes(let bytes):
          writer.add("bytes")
          writer.add(bytes)
        case .file(let path):
          writer.add("file")
          writer.add(path)
        }
        writer.add(part.type)
        writer.add(part.fileName)
      }
    case .file(let path, let first, let size):
      writer.add("file")
      writer.add(path)
      if first > 0 || size != nil { writer.add("\(first) \(size ?? -1)") }
    }
  }
}

/// Ends an op with its request, without a turn of the loop between.
private final class HTTPOpObserver: TaskObserver {
  private let task: HTTPTask
  private let end: (HTTPTask) -> Void

  init(_ task: HTTPTask, _ end: @escaping (HTTPTask) -> Void) {
    self.task = task
    self.end = end
  }

  func run() { end(task) }
}
