internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// `flow.http.client`: what the requests to a service have in common.
struct HTTPClientBindings {
  let host: ScriptHost

  func makeClient(_ arguments: Arguments, _ call: LuaCall) throws -> LuaAnswer {
    let options = try arguments.options(
      1, known: Self.ownFields.map(\.description) + HTTPRequestReader.shareable)
    func wrong(_ field: ByteString, _ problem: ByteString) -> any Error {
      arguments.wrong(1, "field '\(field)': \(problem)")
    }
    let headers = try options.namedTexts("headers") { wrong("headers", $0) }.map {
      HTTPHeader($0.name, $0.value.text, isSecret: $0.value.isSecret)
    }
    let authorization = try options.authorization(arguments)
    let base = try options.string("base")
    var sample = FlowHTTPRequest(base ?? "http://localhost")
    sample.headers = headers
    sample.authorization = authorization
    if let misuse = sample.misuse { throw wrong(misuse.field, misuse.problem) }
    if let base, !base.hasPrefix("http://"), !base.hasPrefix("https://") {
      let got = HTTPTask.shownUnread(base)
      throw wrong("base", "a URL that begins with http:// or https:// expected, got '\(got)'")
    }
    let client = FlowHTTPClient(
      base: base, headers: headers, authorization: authorization,
      cookies: try jar(options),
      maxConnections: try options.count("max_connections"), rate: try options.rate("rate"))
    // Mistakes in the others show here, not at each request.
    let defaults = options.without(Self.ownFields)
    _ = try HTTPRequestReader(arguments, sharing: defaults).request()
    return call.answer(ScriptClient(client, defaults), try HTTPTypes.of(host).client)
  }

  /// The fields of a client that are no fields of a request, or are joined with those of a request.
  private static let ownFields: [ByteString] = [
    "base", "headers", "auth", "max_connections", "rate", "cookies",
  ]

  private func jar(_ options: Options) throws -> HTTPCookieJar? {
    switch options.value("cookies") {
    case nil, .boolean(false): return nil
    case .boolean(true):
      if let problem = HTTPCookieJar.problem {
        throw host.raise(FlowError(.error, ByteString(problem)))
      }
      return HTTPCookieJar()
    case let value?:
      guard let jar = host.vm.object(in: value, try HTTPTypes.of(host).jar) else {
        throw options.wrong("cookies", expected: "boolean, or a jar of flow.http.jar(),")
      }
      return jar
    }
  }

  /// `api.get`, …: functions that also can be called as methods.
  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let client = call.object(1, try HTTPTypes.of(host).client) else {
      throw Arguments(host, call, method: "__index").wrongSelf("client")
    }
    guard let name = call.bytes(2)?.description, HTTPBindings.methods.contains(name) else {
      return try host.absentField(call, of: "a client", known: HTTPBindings.methods)
    }
    return call.answer(
      ScriptClientFunction(client, name), try HTTPTypes.of(host).clientFunction)
  }

  static var metamethods: LuaFields<BoundMethod> {
    HTTPBindings.metamethods + [
      "__call": BoundMethod { host, call in
        let arguments = Arguments(host, call, "client", hidden: 1)
        guard let client = call.object(1, try HTTPTypes.of(host).client) else {
          throw arguments.wrongSelf("client")
        }
        return try HTTPBindings(host: host).startRequest(arguments, call, client: client)
      }
    ]
  }

  static var functionMetamethods: LuaFields<BoundMethod> {
    HTTPBindings.metamethods + [
      "__call": BoundMethod { host, call in
        let types = try HTTPTypes.of(host)
        guard let function = call.object(1, types.clientFunction) else {
          throw Arguments(host, call, method: "__call").wrongSelf("function")
        }
        let client = function.client
        // `api:get(…)` passes the client too.
        let hidden = call.object(2, types.client) === client ? 2 : 1
        return try HTTPBindings(host: host).startRequest(
          Arguments(host, call, "client.\(function.name)", hidden: hidden), call,
          method: function.name, client: client)
      }
    ]
  }
}

/// A client with the fields that its requests have by default.
final class ScriptClient {
  let client: FlowHTTPClient
  let defaults: Options

  init(_ client: FlowHTTPClient, _ defaults: Options) {
    self.client = client
    self.defaults = defaults
  }
}

/// A function of a client. An object, as a function of the state would stay until the state's end.
final class ScriptClientFunction {
  let client: ScriptClient
  let name: String

  init(_ client: ScriptClient, _ name: String) {
    self.client = client
    self.name = name
  }
}

/// `flow.ops.HTTPOp { url = "https://…/{name}", into = "page" }`.
enum HTTPOpBindings {
  static func register(on host: ScriptHost) {
    host.registerDescribed(
      OpClass("HTTPOp", doc: HTTPOp.docText) {
        [unowned host] arguments in
        let (reader, request, key) = try HTTPRequestReader.op(arguments)
        do {
          return try HTTPOp(
            request, into: key, requester: ObjectIdentifier(host),
            showsProgress: reader.reportsProgress,
            makeKey: reader.makesKey
              ? { context in IdempotencyKeys.make(for: context) } : nil
          ) {
            [unowned host] response in
            try value(ofBody: response, host.vm)
          }
        } catch let misuse as HTTPMisuse {
          throw reader.wrong(misuse)
        }
      })
  }

  /// The value of a body: JSON as a table, everything else as bytes.
  private static func value(ofBody response: FlowHTTPResponse, _ vm: LuaVM) throws -> FlowValue {
    let type = response.header("content-type")?.lowercased ?? ""
    let essence = type.bytes.prefix { $0 != UInt8(ascii: ";") && $0 != 32 }
    guard
      essence.equals("application/json")
        || essence.hasPrefix("application/")
          && essence.hasSuffix("+json")
    else { return .bytes(response.body) }
    do {
      return FlowValue(try vm.decodeJSON(response.body))
    } catch let error as JSONTextError {
      let place = HTTPTask.shown(response.url)
      throw FlowError(.error, "'\(place)': \(error.message)")
    }
  }
}

/// Keys by which servers recognize a repeated request.
///
/// The n-th key of an op is equal in each of its attempts, and in each attempt of the flows and ops that
/// enclose it. So a retry doesn't do again what a server has done already.
enum IdempotencyKeys {
  /// The next key of an op's attempt, or one of its own.
  static func make(for context: OpContext?) -> ByteString {
    guard let context else {
      return ExecutionKey.text(.random(in: 0 ... .max), .random(in: 0 ... .max))
    }
    let number = UInt64(context.nextKeyNumber())
    if number == 1 { return context.key }
    let base = context.lineage
    return ExecutionKey.text(base, (base ^ number.spread).spread)
  }
}
