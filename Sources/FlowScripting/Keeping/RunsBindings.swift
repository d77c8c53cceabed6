internal import FlowEngine
internal import FlowJournal
@_spi(Scripting) internal import LuaVM

/// `flow.runs`: kept runs as data.
struct RunsBindings {
  let host: ScriptHost

  static func install(in host: ScriptHost) {
    host.define("runs") { host, call in
      try host.check(.files, call, "runs")
      let arguments = Arguments(host, call, "runs")
      let id = arguments.isNil(1) ? nil : try arguments.name(1)
      let bindings = Self(host: host)
      guard let folder = bindings.folder else {
        throw host.usage(
          call, "bad use of 'runs' (there is no script file whose runs could be kept)")
      }
      do {
        guard let id else { return call.answer(.reference(try bindings.list(folder))) }
        let store = try JournalStore(folder: folder, isReadOnly: true)
        return call.answer(
          .reference(try bindings.object(try store.run(id), store, folder)))
      } catch let error as FlowError {
        throw host.usage(call, "bad use of 'runs' (\(error.message))")
      }
    }
  }

  /// The folder of the store.
  private var folder: ByteString? {
    host.keeping?.options.folder ?? host.hostKeeping.defaults?().folder
  }

  /// All runs, the oldest first; none where there is no store yet.
  private func list(_ folder: ByteString) throws -> LuaReference {
    let store: JournalStore
    do throws(FlowError) {
      store = try JournalStore(folder: folder, isReadOnly: true)
    } catch {
      guard error.storeProblem == .missing else { throw error }
      return try host.vm.makeTable()
    }
    return try host.vm.makeTable(
      values: try store.runs().map { .reference(try object($0, store, folder)) })
  }

  /// A run as a table, which reads its ops when they are first used.
  private func object(
    _ run: KeptRunSummary, _ store: JournalStore, _ folder: ByteString
  ) throws -> LuaReference {
    var fields: [(ByteString, LuaValue)] = [
      ("id", .string(run.id)), ("script", .string(run.script)), ("state", .string(run.word)),
      ("started", .number(run.began)), ("changed", .number(run.changed)),
      ("processes", .integer(run.epoch)), ("store", .string(folder)),
      ("words", .reference(try host.vm.makeTable(values: run.words.map { .string($0) }))),
    ]
    let waits = try store.waits(of: run.id).map { wait -> LuaValue in
      var fields: [(ByteString, LuaValue)] = [
        ("name", .string(wait.name)), ("since", .number(wait.began)),
      ]
      if let ask = wait.ask { fields.append(("ask", .string(ask))) }
      if let type = wait.type { fields.append(("type", .string(type))) }
      return .reference(try host.vm.makeTable(fields: fields))
    }
    fields.append(("waits", .reference(try host.vm.makeTable(values: waits))))
    let table = try host.vm.makeTable(fields: fields)
    let maker = try runTables()
    _ = try host.vm.call(maker, [.reference(table)])
    return table
  }

  /// The function that gives a table the methods of a run.
  private func runTables() throws -> LuaReference {
    try host.service { () throws -> RunTables in
      let read = try host.vm.makeFunction(
        host.bind { host, call in
          call.answer(.reference(try Self(host: host).ops(call)))
        })
      let view = try host.vm.makeFunction(
        host.bind { host, call in try Self(host: host).view(call) })
      let start = try host.vm.makeFunction(
        host.bind { host, call in try Self(host: host).start(call) })
      let chunk = try host.vm.loadOwn(Self.tables, name: "=[flow]")
      guard
        case .reference(let made)? = try host.vm.call(
          chunk, [.reference(read), .reference(view), .reference(start)]
        ).first
      else { throw LuaError(.runtime, "no tables of runs were made") }
      return RunTables(maker: made)
    }.maker
  }

  private static let tables: ByteString = """
    local read, view, start = ...
    local setmetatable, rawset, rawget, ipairs = setmetatable, rawset, rawget, ipairs
    local methods = {}
    function methods.timeline(run, path) return view(run, "timeline", path) end
    function methods.report(run, path) return view(run, "report", path) end
    function methods.execute(run, path)
      local program = start(run, path)
      program:await()
      run.ops = read(rawget(run, "id"), rawget(run, "store"))
      for _, op in ipairs(run.ops) do
        if op.path == path then return op end
      end
    end
    local metatable = { __name = "kept run" }
    function metatable.__index(run, key)
      if key == "ops" then
        local ops = read(rawget(run, "id"), rawget(run, "store"))
        rawset(run, "ops", ops)
        return ops
      end
      return methods[key]
    end
    function metatable.__tostring(run) return "kept run: " .. rawget(run, "id") end
    return function(run) return setmetatable(run, metatable) end
    """

  private func store(_ call: LuaCall, _ folder: ByteString?) throws -> JournalStore {
    guard let folder else { throw host.usage(call, "a kept run has its 'store'") }
    return try JournalStore(folder: folder, isReadOnly: true)
  }

  /// The ops of a run, in the order of their starts.
  private func ops(_ call: LuaCall) throws -> LuaReference {
    let store = try store(call, call.bytes(2))
    let values = ScriptValues(host)
    let records = try store.records(of: call.bytes(1) ?? "")
    return try host.vm.makeTable(
      values: try records.map { .reference(try table(of: $0, store, values)) })
  }

  private func table(
    of record: OpRecord, _ store: JournalStore, _ values: ScriptValues
  ) throws -> LuaReference {
    var outputs: [(ByteString, LuaValue)] = []
    // The names of other than keys begin with a zero. Secrets stay in the store.
    for write in record.writes where !write.isSecret {
      // A large value may be gone.
      guard let name = write.shownName, let bytes = (try? store.load(write)) ?? nil,
        let value = try? values.decode(bytes.bytes)
      else { continue }
      outputs.append((name, try host.luaValue(value)))
    }
    let inputs = (record.inputs + record.reads).map(\.name).filter { $0.bytes.first != 0 }
    var fields: [(ByteString, LuaValue)] = [
      ("path", .string(record.path)), ("op", .string(record.op)),
      ("state", .string(record.state.word)), ("attempts", .integer(Int64(record.attempt))),
      ("started", .number(record.began)),
      ("inputs", .reference(try host.vm.makeTable(values: inputs.map { .string($0) }))),
      ("outputs", .reference(try host.vm.makeTable(fields: outputs))),
      ("lines", .reference(try host.vm.makeTable(values: record.lines.map { .string($0) }))),
    ]
    if let why = record.why { fields.append(("why", .string(why))) }
    if record.ended > 0 {
      fields.append(("ended", .number(record.ended)))
      fields.append(("duration", .number(record.ended - record.began)))
    }
    if let error = record.error { fields.append(("error", .string(error))) }
    if let label = record.label { fields.append(("label", .string(label))) }
    if let place = record.place { fields.append(("place", .string(place))) }
    return try host.vm.makeTable(fields: fields)
  }

  /// Starts the program that executes an op of a run again, with its present code and the data that it had: `--only`.
  private func start(_ call: LuaCall) throws -> LuaAnswer {
    try host.check(.programs, call, "execute")
    let (id, folder) = try run(call, "execute")
    guard call.kind(2) == .string, let path = call.bytes(2) else {
      throw host.usage(
        call,
        "bad argument #1 to 'execute' (path of an op expected, got \(host.shownType(call, 2)))")
    }
    guard let makeCommand = host.hostKeeping.command, host.keeping?.options.mirror == nil else {
      throw host.usage(call, "bad use of 'execute' (this program executes no ops of kept runs)")
    }
    let store = try store(call, folder)
    let known: KeptRunSummary
    do throws(FlowError) {
      known = try store.run(id)
      if !(try store.records(of: id)).contains(where: { $0.isWithin(path) }) {
        throw FlowError(.error, "no op of run \(id) is named '\(path)'")
      }
    } catch {
      throw host.usage(call, "bad use of 'execute' (\(error.message))")
    }
    let command = makeCommand(known, folder, path)
    var request = ProcessRequest(command.words)
    for (name, value) in command.environment { request.environment[name] = .some(value) }
    request.owner = ObjectIdentifier(host)
    request.destination = host.vm.configuration.output.destination
    request.tees = true
    request.label = host.currentOp?.displayName
    let task = ProcessTask(request, check: true, at: host.workPlace, on: host.loop)
    host.begin(task, call.origin)
    return call.answer(task, host.types.task)
  }

  /// The id of the run that a method is called on, and the folder of its store.
  private func run(
    _ call: LuaCall, _ method: ByteString
  ) throws -> (id: ByteString, folder: ByteString) {
    guard case .reference(let run) = try call.value(1), run.kind == .table,
      case .string(let id) = try host.vm.rawGet(.string("id"), in: run),
      case .string(let folder) = try host.vm.rawGet(.string("store"), in: run)
    else {
      throw host.usage(
        call, "calling '\(method)' on bad self (kept run expected): write run:\(method)")
    }
    return (id, folder)
  }

  /// `run:timeline(path)` and `run:report(path)`: the text, or a file with it.
  private func view(_ call: LuaCall) throws -> LuaAnswer {
    let kind = call.bytes(2) ?? ""
    let (id, folder) = try run(call, kind)
    let view = try KeptRunView(id, in: try store(call, folder))
    let text = kind == "timeline" ? view.timeline : view.report
    if call.isNil(3) { return try host.answer(call, .bytes(text)) }
    let path = try Arguments(host, call, kind.description, hidden: 2).path(1)
    return try host.offload(call) { cancellation throws(SystemError) in
      try Files.write(text, to: path, cancellation)
    } answer: { call, _ in
      call.answer()
    }
  }
}

private final class RunTables: HostService {
  let maker: LuaReference

  init(maker: LuaReference) { self.maker = maker }
}

extension OpRecord.State {
  /// The word for it that scripts read.
  fileprivate var word: ByteString {
    switch self {
    case .started: "started"
    case .finished: "finished"
    case .failed: "failed"
    case .undone: "undone"
    case .stopped: "stopped"
    }
  }
}
