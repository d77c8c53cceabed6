package import FlowEngine
internal import FlowSystem
@_spi(Scripting) package import LuaVM

/// The workers of a host.
package final class WorkerPools: HostService {
  fileprivate var limit = ScriptHost.coreCount
  fileprivate var memoryLimit: Int?
  /// The memory that the host shares with its workers, once they have been needed.
  fileprivate(set) var budget: LuaMemoryBudget?
  /// The workers of the active loop, once they have been needed.
  fileprivate var active: WorkerPool?
  /// Those of the paused loops, if they have some.
  private var waiting: [WorkerPool?] = []
  /// The workers of scripts of other nodes; see `RemoteNode`.
  package var ofSessions: [WorkerPool] = []
  private var lastNumber: UInt64 = 0

  /// The workers of all loops.
  var all: [WorkerPool] { (waiting + [active]).compactMap { $0 } + ofSessions }

  /// A number for a task, a group or a function, unique among all pools.
  func makeNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  /// Another loop becomes active.
  func pause() {
    waiting.append(active)
    active = nil
  }

  /// That loop is active no more. Its workers know its time: the next one starts new ones.
  func resume() {
    active?.close()
    active = waiting.removeLast()
  }

  func hostWillClose(_ host: ScriptHost) {
    for pool in all { pool.close() }
    active = nil
    waiting = []
    ofSessions = []
  }
}

/// The differences in the host of a worker, and the main host's view of workers.
extension ScriptHost {
  package var workerPools: WorkerPools { service { WorkerPools() } }

  /// The maximum number of workers, 0 for none: making an op that runs in a worker is an error then. Set it
  /// before the first one is needed. By default one per core.
  public var workerLimit: Int {
    get { workerPools.limit }
    set { workerPools.limit = newValue }
  }

  /// The most bytes that each single worker may use, with what is held outside of its state; set it before the
  /// first one is needed. nil, the default, for no such limit: the host and all its workers share the limit of
  /// the host's state, so that a worker may use what the others leave.
  public var workerMemoryLimit: Int? {
    get { workerPools.memoryLimit }
    set { workerPools.memoryLimit = newValue }
  }

  /// The memory that the host shares with its workers, once they have been needed.
  package var memoryBudget: LuaMemoryBudget? { existing(WorkerPools.self)?.budget }

  /// The workers of the active loop.
  var workers: WorkerPool {
    let pools = workerPools
    if let active = pools.active { return active }
    let made = makePool()
    if isOpen { pools.active = made }
    return made
  }

  /// The workers of all loops.
  var openPools: [WorkerPool] { existing(WorkerPools.self)?.all ?? [] }

  /// Makes a pool of workers.
  package func makePool() -> WorkerPool {
    let pools = workerPools
    if pools.budget == nil, let budget = LuaMemoryBudget(limit: vm.memoryLimit) {
      pools.budget = budget
      vm.share(budget)
    }
    var configuration = vm.configuration
    configuration.memoryBudget = pools.budget
    configuration.memoryLimit = pools.memoryLimit
    if pools.budget == nil, let limit = vm.memoryLimit {
      // There was no memory for a budget: each worker has the host's limit for itself.
      configuration.memoryLimit = min(limit, pools.memoryLimit ?? limit)
    }
    configuration.instructionLimit = vm.instructionLimit
    events.onNeedOfWorkers?()
    return WorkerPool(self, size: pools.limit, configuration: configuration)
  }

  /// The state has another limit, or none: so do all workers together.
  func workersMemoryLimitChanged() {
    memoryBudget?.limit = vm.memoryLimit
    for pool in openPools { pool.memoryLimitChanged() }
  }

  /// The cores that this process may use; at least 1.
  package static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// The time, in nanoseconds, for busy code that is being stopped. In a worker the stop comes from
  /// another thread, and the code waiting for the worker matters more than the code that is
  /// abandoned.
  var busyGrace: Int64 { isWorker ? 0 : loop.gracePeriod.clampedNanoseconds }

  /// Makes a task of workers stop, of any loop.
  func stopWork(_ number: UInt64, _ error: FlowError) {
    if remote?.stop(number, error) == true { return }
    for pool in openPools { pool.stop(number, error) }
  }

  /// Names of the module that only the main script has.
  private static let mainNames: Set<String> = [
    "op", "wrap", "new", "dispatcher", "machine", "step", "any_step", "on", "next", "forward",
    "back",
    "stay", "continue", "finish", "retry", "ops", "remote", "sandbox", "testing",
  ]

  /// The value of `flow.name` in a worker for a name that its module doesn't have.
  func mainName(_ call: LuaCall) throws -> LuaAnswer {
    if call.bytes(2) == "read" {
      throw usage(call, "flow.read isn't there in a worker: the main script reads standard input")
    }
    guard let name = call.bytes(2)?.description, Self.mainNames.contains(name) else {
      return call.answer(.nil)
    }
    throw usage(
      call, "flow.\(name) isn't there in a worker: ops and flows are made by the main script")
  }

  /// The value of `flow.name` for a name that the module doesn't have: `checking`, `stopping`, `version` or a submodule,
  /// else nil or, in a worker, an error for a name that exists elsewhere.
  static func moduleProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let name = call.bytes(2) else { return call.answer(.nil) }
    if name == "checking" { return call.answer(.boolean(host.isChecking)) }
    if name == "stopping" { return call.answer(.boolean(StopBindings.isStopping)) }
    if name == "version" { return call.answer(.string(FlowLuaVersion.number)) }
    if let submodule = try host.submodule(name) { return call.answer(.reference(submodule)) }
    return host.isWorker ? try host.mainName(call) : call.answer(.nil)
  }

  /// Refuses a key without a value that the op didn't declare, because its value wasn't sent.
  func checkVisible(_ key: DataKey, _ context: OpContext, _ call: LuaCall) throws {
    guard !context.op.needs(on: loop).contains(where: { $0.key == key }) else { return }
    let name = context.op.name
    throw usage(
      call,
      "key '\(loop.keys.name(of: key))' isn't in the needs of \(name): a worker sees only declared "
        + "needs and the item")
  }

  /// Refuses a value that can't travel back to the main thread.
  func checkEncodable(_ value: FlowValue, _ key: DataKey, _ call: LuaCall) throws {
    guard let problem = encodeProblem(value) else { return }
    let name = loop.keys.name(of: key)
    throw usage(call, problem.message("the value of <\(name)>"))
  }

  /// Whether `flow` is a global of the state.
  package var hasGlobalModule: Bool {
    guard case .reference(let value)? = try? vm.global("flow") else { return false }
    return vm.areSame(value, module)
  }

  /// The module paths of the main state, for its workers.
  var packagePaths: [(field: ByteString, text: ByteString)] {
    guard case .reference(let package)? = try? vm.global("package") else { return [] }
    var paths: [(ByteString, ByteString)] = []
    for field in ["path", "cpath", LuaVM.scriptPath] as [ByteString] {
      guard case .string(let text)? = try? vm.rawGet(.string(field), in: package) else { continue }
      paths.append((field, text))
    }
    return paths
  }

  /// The reason why a received function or value couldn't be made, as an error that a script would
  /// have raised.
  package func flowError(unpacking error: any Error) -> FlowError {
    guard let raised = error as? LuaError else { return .from(error) }
    if raised.code == .instructions { return .from(raised) }
    let error =
      (try? flowError(raised: raised.value ?? .string(raised.message), at: ""))
      ?? FlowError(raised.flowKind, raised.message)
    return error.with { $0.column = raised.column }
  }

  // MARK: Other nodes

  /// The service that executes ops on other nodes; nil for none. It is given once, before a script runs.
  package var remote: (any RemoteService)? { existing(RemoteServiceHolder.self)?.service }

  package func setRemote(_ service: any RemoteService) {
    // These are closed after it: a worker that can't be stopped doesn't delay what the server has to know.
    _ = workerPools
    _ = self.service { RemoteServiceHolder(service) }
  }

  /// Whether ops with `thread = "remote"` execute on other nodes: else in workers, as tests do.
  var usesRemote: Bool { waitingLoops.isEmpty && loop.processReplacement == nil }

  func neededRemote() throws(FlowError) -> any RemoteService {
    if let remote { return remote }
    throw .usage(
      "this program can't execute ops on other nodes: it has to import FlowNodes, and call `ScriptHost.useRemote` or `allowRemote`"
    )
  }

  func installRemote() {
    define("remote") { host, call in
      let remote: any RemoteService
      do throws(FlowError) { remote = try host.neededRemote() } catch {
        throw host.usage(call, "bad use of 'remote' (\(error.message))")
      }
      return try remote.use(call)
    }
  }

  /// Ends the jobs on other nodes, for a process that ends next: the server has received what was sent to it then, unless
  /// it hasn't taken that for 1 s.
  func closeRemote(isTerminated: Bool) {
    guard let remote else { return }
    remote.close(isTerminated: isTerminated)
    _ = loop.turn { remote.hasEnded }
  }

  /// Closes the host, for a process that ends next, as `closeRemote`.
  package func closeAtExit() {
    let remote = remote
    close()
    if let remote { _ = loop.turn { remote.hasEnded } }
  }
}

extension LuaVM {
  /// Makes modules known to `require`, unless modules of their names are known already.
  func preload(_ modules: [ModuleSource]) throws {
    guard !modules.isEmpty, case .reference(let package) = try global("package"),
      case .reference(let preload) = try rawGet("preload", in: package)
    else { return }
    for module in modules {
      guard try rawGet(.string(module.name), in: preload).isNil else { continue }
      let loader: LuaReference
      do {
        loader = try load(module.text, chunkName: "@\(module.path)")
      } catch {
        // It is raised where the module is required.
        loader = try makeFunction { _ in throw error }
      }
      try set(.reference(loader), at: .string(module.name), in: preload)
    }
  }

  /// Adds a line to the error of `require` about a module that isn't found; it depends on the name of the module.
  func addToMissingModules(_ line: @escaping (ByteString) -> ByteString?) throws {
    guard case .reference(let package) = try global("package"),
      case .reference(let searchers) = try rawGet("searchers", in: package)
    else { return }
    var count = 0
    while try !rawGet(.integer(Int64(count + 1)), in: searchers).isNil { count += 1 }
    // A searcher that finds nothing returns what the error has about it.
    let searcher = try makeFunction { call in
      call.answer(line(call.bytes(1) ?? "").map { .string($0) } ?? .nil)
    }
    try set(.reference(searcher), at: count + 1, in: searchers)
  }

  /// Sets the module paths.
  func setPackagePaths(_ paths: [(field: ByteString, text: ByteString)]) throws {
    guard case .reference(let package) = try global("package") else { return }
    for (field, text) in paths {
      try set(.string(text), field.description, in: package)
    }
    if paths.contains(where: { $0.field == Self.scriptPath }) { try addScriptSearcher(package) }
  }

  /// The field of `package` with the path of modules that lie beside the script.
  static let scriptPath: ByteString = "scriptpath"

  /// Lets `require` look for modules in the folder of the script, after it has looked everywhere else. The tests of
  /// Lua expect its own `package.path`, so that this is a path of its own; and an error is lua5.4's, so that it
  /// doesn't name this path.
  package func searchModules(inFolderOf script: ByteString) throws {
    let folder = FileTarget.folder(of: script)
    // The working directory is in `package.path`. Two characters mean something else in such a path.
    guard !folder.isEmpty, folder != "./",
      !folder.bytes.contains(where: { ";?".bytes.contains($0) }),
      case .reference(let package) = try global("package")
    else { return }
    try set(
      .string("\(folder)?.lua;\(folder)?/init.lua"), Self.scriptPath.description, in: package)
    try addScriptSearcher(package)
  }

  /// Adds a searcher like the one of `package.path`, unless code that ran before has taken the searchers away.
  private func addScriptSearcher(_ package: LuaReference) throws {
    guard case .reference(let searchers) = try rawGet("searchers", in: package),
      searchers.kind == .table
    else { return }
    let searcher = """
      local package, searchpath, loadfile, error = ..., (...).searchpath, loadfile, error
      package.searchers[#package.searchers + 1] = function(name)
        local file = package.scriptpath and searchpath(name, package.scriptpath)
        if not file then return end
        local chunk, problem = loadfile(file)
        if not chunk then error("error loading module '" .. name .. "' from file '" .. file .. "':\\n\\t" .. problem, 0) end
        return chunk, file
      end
      """
    _ = try call(
      try load(ByteString(searcher), chunkName: "=package.scriptpath"), [.reference(package)])
  }
}
