internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// `flow.http`: a table of functions that can be called itself.
///
/// Its Lua side is made when a script first uses it, and libcurl is opened by the first request.
extension ScriptHost {
  /// Makes the module `flow.http`.
  func makeHTTPModule() throws -> LuaReference {
    let call = try vm.makeFunction(
      bind { host, call in
        try host.startRequest(Arguments(host, call, "flow.http", hidden: 1), call)
      })
    let module = try vm.makeTable(
      metatable: try vm.makeTable(fields: [("__call", .reference(call))]))
    var functions: LuaFields<LuaFunction> = [:]
    for name in Self.httpMethods {
      functions.list.append(
        (
          name,
          bind { host, call in
            try host.startRequest(Arguments(host, call, "flow.http.\(name)"), call, method: name)
          }
        ))
    }
    functions.list.append(
      (
        "client",
        bind { host, call in try host.makeClient(Arguments(host, call, "flow.http.client"), call) }
      ))
    functions.list.append(
      (
        "jar",
        bind { host, call in
          if let problem = HTTPCookieJar.problem {
            throw host.raise(FlowError(.error, ByteString(problem)))
          }
          return call.answer(HTTPCookieJar(), try host.httpTypes().jar)
        }
      ))
    try vm.set(functions: functions, in: module)
    return module
  }

  /// The short forms: functions with the names of methods.
  static let httpMethods: [String] = ["get", "head", "delete", "post", "put", "patch"]

  /// The types of `flow.http`, made when first needed.
  func httpTypes() throws -> HTTPTypes { try service { try HTTPTypes(self) } }

  /// Starts a request: a URL, a table, or a URL and a table; `method` is that of a short form, and
  /// `client` has the fields that its requests have in common.
  func startRequest(
    _ arguments: Arguments, _ call: LuaCall, method: String? = nil, client: ScriptClient? = nil
  ) throws -> LuaAnswer {
    try check(.requests, call, arguments.function)
    let reader = try HTTPRequestReader(arguments, method: method, defaults: client?.defaults)
    var request = try reader.request()
    if let client {
      if !client.client.isOwn(request.url) {
        // The client's certificate is for its server.
        if !reader.gives("cert") { request.certificate = nil }
        if !reader.gives("key") { request.key = nil }
      }
      request = client.client.completing(request, hiding: loop.secrets)
    }
    let context = currentOp.map { (slot: $0.slot, generation: $0.generation) }
    let progress = reader.progressFunction.map {
      HTTPProgress(self, $0, origin: call.origin)
    }
    if let progress {
      request.onProgress = { progress.report($0, $1) }
    } else if reader.reportsProgress, let context {
      request.onProgress = { [unowned self] done, total in
        self.context(slot: context.slot, generation: context.generation)?
          .progress(Double(done), of: total.map { Double($0) })
      }
    }
    let task: HTTPTask
    do {
      task = try HTTPTask(
        request, client: client?.client, requester: ObjectIdentifier(self),
        at: workPlace, on: loop)
    } catch let misuse as HTTPMisuse {
      throw reader.wrong(misuse)
    } catch let error as FlowError where error.kind == .usage {
      throw usage(call, error.message.description)
    } catch let error as FlowError {
      let failed = FlowTask<FlowValue>.failed(error, on: loop)
      failed.origin = call.origin
      return call.answer(failed, types.task)
    }
    begin(task, call.origin)
    progress?.work = task.work
    if let context {
      task.onLine = { [unowned self] line in
        self.context(slot: context.slot, generation: context.generation)?.log(line)
      }
    }
    task.start()
    return call.answer(task, types.task)
  }

  /// The result of a request for scripts.
  func value(of response: HTTPResponse) throws -> LuaValue {
    loop.memory?.add(response.body)
    return try vm.value(of: response, try httpTypes().response)
  }
}

/// The kinds of objects that `flow.http` makes.
final class HTTPTypes: HostService {
  let response: LuaObjectType<HTTPResponse>
  let body: LuaObjectType<HTTPBodyReader>
  let client: LuaObjectType<ScriptClient>
  /// The functions of clients, such as `api.get`.
  let clientFunction: LuaObjectType<ScriptClientFunction>
  let jar: LuaObjectType<HTTPCookieJar>
  /// The metatable of `res.headers`: names are found whatever their case.
  let headers: LuaReference

  init(_ host: ScriptHost) throws {
    let vm = host.vm
    response = try vm.defineObjectType(
      "response", of: HTTPResponse.self, methods: host.bind(ScriptHost.responseMethods),
      getter: host.bind(ScriptHost.responseProperty),
      metamethods: { _ in host.bind(ScriptHost.responseMetamethods) })
    body = try vm.defineObjectType(
      "body", of: HTTPBodyReader.self, methods: [:],
      metamethods: { _ in host.bind(ScriptHost.bodyMetamethods) })
    client = try vm.defineObjectType(
      "client", of: ScriptClient.self, methods: [:],
      getter: host.bind(ScriptHost.clientProperty),
      metamethods: { _ in host.bind(ScriptHost.clientMetamethods) })
    clientFunction = try vm.defineObjectType(
      "function", of: ScriptClientFunction.self, methods: [:],
      metamethods: { _ in host.bind(ScriptHost.clientFunctionMetamethods) })
    jar = try vm.defineObjectType(
      "jar", of: HTTPCookieJar.self, methods: [:],
      metamethods: { _ in host.bind(ScriptHost.httpMetamethods) })
    let index = try vm.makeFunction { [unowned vm] call in
      guard let name = call.bytes(2), case .reference(let table) = try call.value(1) else {
        return call.answer(.nil)
      }
      return call.answer(try vm.rawGet(.string(name.lowercased), in: table))
    }
    headers = try vm.makeTable(fields: [("__index", .reference(index))])
  }
}

extension ScriptHost {
  static var httpMetamethods: LuaFields<BoundMethod> {
    [
      "__tostring": BoundMethod { host, call in
        let types = try host.httpTypes()
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
}
