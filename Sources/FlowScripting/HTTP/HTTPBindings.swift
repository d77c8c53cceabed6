internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// `flow.http`: a table of functions that can be called itself.
///
/// Its Lua side is made when a script first uses it, and libcurl is opened by the first request.
struct HTTPBindings {
  let host: ScriptHost

  /// Makes the module `flow.http`.
  func makeModule() throws -> LuaReference {
    let call = try host.vm.makeFunction(
      host.bind { host, call in
        try Self(host: host).startRequest(Arguments(host, call, "flow.http", hidden: 1), call)
      })
    let module = try host.vm.makeTable(
      metatable: try host.vm.makeTable(fields: [("__call", .reference(call))]))
    var functions: LuaFields<LuaFunction> = [:]
    for name in Self.methods {
      functions.list.append(
        (
          name,
          host.bind { host, call in
            try Self(host: host).startRequest(
              Arguments(host, call, "flow.http.\(name)"), call, method: name)
          }
        ))
    }
    functions.list.append(
      (
        "client",
        host.bind { host, call in
          try HTTPClientBindings(host: host).makeClient(
            Arguments(host, call, "flow.http.client"), call)
        }
      ))
    functions.list.append(
      (
        "jar",
        host.bind { host, call in
          if let problem = HTTPCookieJar.problem {
            throw host.raise(FlowError(.error, ByteString(problem)))
          }
          return call.answer(HTTPCookieJar(), try HTTPTypes.of(host).jar)
        }
      ))
    try host.vm.set(functions: functions, in: module)
    return module
  }

  /// The short forms: functions with the names of methods.
  static let methods: [String] = ["get", "head", "delete", "post", "put", "patch"]

  /// Starts a request: a URL, a table, or a URL and a table; `method` is a short form's, and
  /// `client` has the fields that its requests have in common.
  func startRequest(
    _ arguments: Arguments, _ call: LuaCall, method: String? = nil, client: ScriptClient? = nil
  ) throws -> LuaAnswer {
    try host.check(.requests, call, arguments.function)
    let reader = try HTTPRequestReader(arguments, method: method, defaults: client?.defaults)
    var request = try reader.request()
    if let client {
      if !client.client.isOwn(request.url) {
        // The client's certificate is for its server.
        if !reader.gives("cert") { request.certificate = nil }
        if !reader.gives("key") { request.key = nil }
      }
      request = client.client.completing(request, hiding: host.loop.secrets)
    }
    let context = host.currentOp.map { (slot: $0.slot, generation: $0.generation) }
    let progress = reader.progressFunction.map {
      HTTPProgress(host, $0, origin: call.origin)
    }
    if let progress {
      request.onProgress = { progress.report($0, $1) }
    } else if reader.reportsProgress, let context {
      request.onProgress = { [unowned host] done, total in
        host.context(slot: context.slot, generation: context.generation)?
          .progress(Double(done), of: total.map { Double($0) })
      }
    }
    let task: HTTPTask
    do {
      task = try HTTPTask(
        request, client: client?.client, requester: ObjectIdentifier(host),
        at: host.workPlace, on: host.loop)
    } catch let misuse as HTTPMisuse {
      throw reader.wrong(misuse)
    } catch let error as FlowError where error.kind == .usage {
      throw host.usage(call, error.message)
    } catch let error as FlowError {
      let failed = FlowTask<FlowValue>.failed(error, on: host.loop)
      failed.origin = call.origin
      return call.answer(failed, host.types.task)
    }
    host.begin(task, call.origin)
    progress?.work = task.work
    if let context {
      task.onLine = { [unowned host] line in
        host.context(slot: context.slot, generation: context.generation)?.log(line)
      }
    }
    task.start()
    return call.answer(task, host.types.task)
  }

  static var metamethods: LuaFields<BoundMethod> {
    [
      "__tostring": BoundMethod { host, call in
        let types = try HTTPTypes.of(host)
        if let response = call.object(1, types.response) {
          return try host.answer(call, .bytes("response: \(response.status)"))
        }
        if call.object(1, types.client) != nil { return call.answer(.string("client")) }
        if call.object(1, types.jar) != nil { return call.answer(.string("jar")) }
        if call.object(1, types.body) != nil { return call.answer(.string("body")) }
        if call.object(1, types.clientFunction) != nil { return call.answer(.string("function")) }
        let name = call.typeName(1)
        throw host.usage(
          call, "bad argument #1 to '__tostring' (object of flow.http expected, got \(name))")
      },
      "__newindex": BoundMethod { host, call in
        let field = call.bytes(2).map { "field '\($0)'" } ?? "a field"
        throw host.usage(call, "can't set \(field) of \(call.typeName(1))")
      },
    ]
  }

  /// The result of a request for scripts.
  func value(of response: FlowHTTPResponse) throws -> LuaValue {
    host.loop.memory?.add(response.body)
    return try host.vm.value(of: response, try HTTPTypes.of(host).response)
  }
}

/// The kinds of objects that `flow.http` makes.
final class HTTPTypes: HostService {
  let response: LuaObjectType<FlowHTTPResponse>
  let body: LuaObjectType<HTTPBodyReader>
  let client: LuaObjectType<ScriptClient>
  /// The functions of clients, such as `api.get`.
  let clientFunction: LuaObjectType<ScriptClientFunction>
  let jar: LuaObjectType<HTTPCookieJar>
  /// The metatable of `res.headers`: names are found whatever their case.
  let headers: LuaReference

  /// Those of a host, made when first needed.
  static func of(_ host: ScriptHost) throws -> HTTPTypes {
    try host.service { try HTTPTypes(host) }
  }

  private init(_ host: ScriptHost) throws {
    let vm = host.vm
    response = try vm.defineObjectType(
      "response", of: FlowHTTPResponse.self, methods: host.bind(HTTPResponseBindings.methods),
      getter: host.bind(HTTPResponseBindings.property),
      metamethods: { _ in host.bind(HTTPResponseBindings.metamethods) })
    body = try vm.defineObjectType(
      "body", of: HTTPBodyReader.self, methods: [:],
      metamethods: { _ in host.bind(HTTPResponseBindings.bodyMetamethods) })
    client = try vm.defineObjectType(
      "client", of: ScriptClient.self, methods: [:],
      getter: host.bind(HTTPClientBindings.property),
      metamethods: { _ in host.bind(HTTPClientBindings.metamethods) })
    clientFunction = try vm.defineObjectType(
      "function", of: ScriptClientFunction.self, methods: [:],
      metamethods: { _ in host.bind(HTTPClientBindings.functionMetamethods) })
    jar = try vm.defineObjectType(
      "jar", of: HTTPCookieJar.self, methods: [:],
      metamethods: { _ in host.bind(HTTPBindings.metamethods) })
    let index = try vm.makeFunction { [unowned vm] call in
      guard let name = call.bytes(2), case .reference(let table) = try call.value(1) else {
        return call.answer(.nil)
      }
      return call.answer(try vm.rawGet(.string(name.lowercased), in: table))
    }
    headers = try vm.makeTable(fields: [("__index", .reference(index))])
  }
}
