internal import FlowEngine
internal import Glibc
internal import LuaVM

/// What is different in the host of a worker, and what the main host knows of workers.
extension ScriptHost {
  /// The cores that this process may use; at least 1.
  static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// How long busy code that is asked to stop may go on, in nanoseconds. In a worker somebody else
  /// asks, and what waits for the worker is more than what is given up.
  var busyGrace: Int64 { isWorker ? 0 : loop.gracePeriod }

  /// Has a task of workers stop, whichever loop it belongs to.
  func stopWork(_ number: UInt64, _ error: FlowError) {
    for pool in openPools { pool.stop(number, error) }
  }

  /// Names of the module that only the main script has.
  private static let mainNames: Set<String> = [
    "op", "wrap", "new", "dispatcher", "machine", "step", "any_step", "on", "next", "forward",
    "back",
    "stay", "continue", "finish", "retry", "ops",
  ]

  /// What `flow.name` gives in a worker for a name that its module doesn't have.
  func mainName(_ call: LuaCall) throws -> LuaAnswer {
    guard let name = call.string(2)?.description, Self.mainNames.contains(name) else {
      return call.answer(.nil)
    }
    throw usage(
      call, "flow.\(name) isn't there in a worker: ops and flows are made by the main script")
  }

  /// What `flow.name` gives for a name that the module doesn't have: `checking`, else nil or, in a
  /// worker, an error for what is there elsewhere.
  static func moduleProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    if call.string(2) == "checking" { return call.answer(.boolean(host.isChecking)) }
    return host.isWorker ? try host.mainName(call) : call.answer(.nil)
  }

  /// Refuses a key without a value that the op didn't declare: nobody has sent it.
  func checkVisible(_ key: Key, _ context: OpContext, _ call: LuaCall) throws {
    guard !context.op.needs(on: loop).contains(where: { $0.key == key }) else { return }
    let name = context.op.name
    throw usage(
      call,
      "key '\(loop.keys.name(of: key))' isn't in the needs of \(name): a worker sees only declared "
        + "needs and the item")
  }

  /// Refuses a value that can't go back to the main thread.
  func checkTravels(_ value: Value, _ key: Key, _ call: LuaCall) throws {
    guard let problem = travelProblem(value) else { return }
    let name = loop.keys.name(of: key)
    throw usage(call, problem.message("the value of <\(name)>").description)
  }

  /// Whether `flow` is a global of the state.
  var hasGlobalModule: Bool {
    guard case .reference(let value)? = try? vm.global("flow") else { return false }
    return vm.areSame(value, module)
  }

  /// Where the main state finds modules, for its workers.
  var packagePaths: [(field: ByteString, text: ByteString)] {
    guard case .reference(let package)? = try? vm.global("package") else { return [] }
    var paths: [(ByteString, ByteString)] = []
    for field in ["path", "cpath"] as [LuaString] {
      guard case .string(let text)? = try? vm.rawGet(.string(field), in: package) else { continue }
      paths.append((ByteString(field), ByteString(text)))
    }
    return paths
  }

  /// Why a function or value couldn't be made that has arrived: as a script would have raised it.
  func flowError(unpacking error: any Error) -> FlowError {
    if let error = error as? FlowError { return error }
    guard let raised = error as? LuaError else {
      return FlowError(.error, ByteString(describing: error))
    }
    return (try? flowError(raised: raised.value ?? .string(raised.message), at: ""))
      ?? FlowError(.error, ByteString(raised.message))
  }
}

extension LuaVM {
  /// Sets where modules are found.
  func setPackagePaths(_ paths: [(field: ByteString, text: ByteString)]) throws {
    guard case .reference(let package) = try global("package") else { return }
    for (field, text) in paths {
      try set(.string(LuaString(text)), field.description, in: package)
    }
  }
}
