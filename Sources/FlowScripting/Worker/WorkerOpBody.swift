package import FlowEngine
@_spi(Scripting) package import LuaVM

/// The function of an op, packed for the workers; workers that have it drop it with this object.
package final class WorkerFunction {
  package let host: ScriptHost
  package let function: LuaReference
  package let code: WorkerCode
  /// The place of the script where the function's caller was made.
  private let position: ByteString

  /// Packs a function; throws an `EncodeError`.
  init(_ host: ScriptHost, _ function: LuaReference, at position: ByteString) throws {
    self.host = host
    self.function = function
    self.position = position
    code = WorkerCode(id: host.workers.makeNumber(), package: try host.vm.pack(function))
    host.loop.memory?.add(code.package.storage, bytes: code.package.count)
  }

  deinit { for pool in host.openPools { pool.forget(code) } }

  /// The function as other nodes get it, once one has got it.
  package var travelling: AnyObject?

  /// The reason why the function isn't the packed one any more; nil if it is.
  package func problem(of name: ByteString) -> FlowError? {
    do {
      guard let change = try host.vm.change(of: function, since: code.package) else { return nil }
      return .usage(
        """
        \(position)upvalue '\(ByteString(describing: change.upvalue))' of function at \
        \(ByteString(describing: change.function)) was assigned after [\(name)] was made: a worker \
        has it as it was; pass it as an argument, or as data
        """)
    } catch {
      return FlowError(.error, ByteString(describing: error))
    }
  }
}

/// The body of an op written in Lua that is executed by a worker.
///
/// The op's policy, its needs and gives, and its place in a flow are handled where the op was
/// started, as for any other op: the worker executes one attempt at its function. The time that an
/// op waits for a free worker doesn't count towards its timeout. Groups of ops without a policy are
/// left to `WorkerItemRunner`, so that tiny items can travel many at a time.
final class WorkerOpBody: LuaOpBody, ItemRunnerProvider, MemoryLimitedBody {
  private let shared: WorkerFunction
  let arguments: LuaReference?
  let argumentCount: Int
  /// The most that one execution may allocate in the worker; nil for no limit.
  let memory: ByteCount?
  /// `worker` or `remote`.
  let thread: OpThread
  /// The tags that a node needs in order to execute it.
  let tags: RemoteTags
  private var host: ScriptHost { shared.host }

  package var function: LuaReference { shared.function }

  init(
    _ shared: WorkerFunction, arguments: LuaReference? = nil, argumentCount: Int = 0,
    memory: ByteCount? = nil, thread: OpThread = .worker, tags: RemoteTags = RemoteTags()
  ) {
    self.thread = thread
    self.tags = tags
    self.shared = shared
    self.arguments = arguments
    self.argumentCount = argumentCount
    self.memory = memory
  }

  /// The body with bound arguments.
  func binding(_ arguments: LuaReference?, count: Int) -> WorkerOpBody {
    WorkerOpBody(
      shared, arguments: arguments, argumentCount: count, memory: memory, thread: thread, tags: tags
    )
  }

  /// The body with a limit.
  func limited(to memory: ByteCount) -> WorkerOpBody {
    WorkerOpBody(
      shared, arguments: arguments, argumentCount: argumentCount, memory: memory, thread: thread,
      tags: tags)
  }

  /// The body at another place.
  func placed(_ thread: OpThread, _ tags: RemoteTags) -> WorkerOpBody {
    WorkerOpBody(
      shared, arguments: arguments, argumentCount: argumentCount, memory: memory, thread: thread,
      tags: tags)
  }

  /// The body on the main thread.
  func onMain() -> ScriptOpBody {
    ScriptOpBody(host, function, arguments: arguments, argumentCount: argumentCount)
  }

  /// The bound arguments, ready to travel.
  private func wireArguments() throws(FlowError) -> WireBatch {
    var batch = WireBatch()
    guard let arguments else { return batch }
    for index in 0..<argumentCount {
      do {
        let value = try host.vm.rawGet(.integer(Int64(index + 1)), in: arguments)
        let wired = try host.wire(value, &batch)
        batch.values.append(wired)
      } catch let problem as WireProblem {
        throw problem.failure("argument #\(index + 1)")
      } catch {
        throw FlowError(.error, ByteString(describing: error))
      }
    }
    return batch
  }

  func start(_ context: OpContext) -> CallState {
    do throws(FlowError) {
      if let problem = shared.problem(of: context.op.name) { throw problem }
      let number = host.workers.makeNumber()
      let job = WorkerJob(
        code: shared.code, arguments: try wireArguments(), kind: .op(try place(context)))
      let execution = WorkerExecution(host, number, job, context)
      context.state = execution
      context.beginWaiting()
      if thread == .remote, host.usesRemote {
        try host.neededRemote().submit(execution, number, job, shared, tags, of: context)
      } else {
        host.workers.submit(execution, number)
      }
      return .suspended
    } catch {
      context.fail(error)
      return .finished
    }
  }

  /// The worker's information about the op's place: its needs and, in a group, the contents of its
  /// item's bucket.
  private func place(_ context: OpContext) throws(FlowError) -> WorkerJob.OpPlace {
    var visible: [ByteString] = []
    var streams: [ByteString] = []
    for need in context.op.needs {
      if need.type.isStream, context.has(host.loop.keys.intern(need.name)) {
        streams.append(need.name)
      } else {
        visible.append(need.name)
      }
    }
    if context.index > 0 {
      for entry in context.bucket.entries {
        let name = host.loop.keys.name(of: entry.key)
        if !visible.contains(name) { visible.append(name) }
      }
    }
    let (keys, data) = try host.wire(visible, of: context.bucket)
    var place = WorkerJob.OpPlace(
      name: context.op.name, index: context.index, label: context.label,
      attempt: context.attempt, lineage: context.lineage, span: context.spanOrigin,
      grace: context.grace, memory: memory?.bytes,
      endingError: context.endingError.map { WireError($0, from: host) },
      visible: visible, keys: keys, data: data)
    place.streams = streams
    return place
  }

  /// The form of this op on the main thread: where it is executed is no part of its code.
  func codeForm() throws -> CodeForm? { try host.codeForm(of: function, arguments: arguments) }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? WorkerExecution)?.cancel(error)
  }

  func itemRunner(for work: ItemWork) -> (any ItemRunner)? {
    let declared = work.op.needs + work.op.gives
    guard !work.hasPolicy, memory == nil, work.count > 0, thread == .worker || !host.usesRemote,
      !declared.contains(where: { $0.type.isTested })
    else {
      // Each item by itself, with the only implementation of policies, and in a worker for itself if its
      // memory is limited; of another node, because each item has a hand-out of its own.
      return nil
    }
    do throws(FlowError) {
      if let problem = shared.problem(of: work.op.name) { throw problem }
      let itemName = host.loop.keys.name(of: work.itemKey)
      let (keys, data) = try host.wire(
        work.op.needs.map(\.name).filter { $0 != itemName }, of: work.data)
      return WorkerItemRunner(
        host, work, shared, arguments: try wireArguments(), keys: keys, data: data)
    } catch {
      return WorkerItemRunner(host, work, shared, refusing: error)
    }
  }
}

extension WorkerOpBody: LuaCode {
  var codeValues: [LuaValue] { onMain().codeValues }
}

/// An op that a worker executes, on the main loop.
private final class WorkerExecution: StreamingTask {
  private let host: ScriptHost
  private let number: UInt64
  private let job: WorkerJob
  private var context: OpContext?

  init(_ host: ScriptHost, _ number: UInt64, _ job: WorkerJob, _ context: OpContext) {
    self.host = host
    self.number = number
    self.job = job
    self.context = context
  }

  func order(for worker: Int) -> WorkerOrder? {
    context == nil ? nil : .start(id: number, job)
  }

  func begun(in lane: UInt8) {
    context?.endWaiting()
    context?.setLane(lane)
  }

  func lostNode(_ name: ByteString) {
    context?.log("\(name) is gone: executed again on another node")
    context?.beginWaiting()
  }

  var grace: Duration? { context?.grace }

  var isExclusive: Bool {
    if case .op(let place) = job.kind { return place.memory != nil }
    return false
  }

  var hasTimeout: Bool { context?.hasTimeout ?? false }

  func isHeld(_ limit: Limit) -> Bool { context?.isHeld(limit) == true }

  func cancel(_ error: FlowError) { host.stopWork(number, error) }

  func handle(_ event: WorkerReport.JobEvent) {
    guard let context else { return }
    switch event.what {
    case .log(let text): context.log(text, at: event.time)
    case .progress(let done, let total): context.progress(done, of: total)
    case .work(let work): context.workPlace?.append(work, endedAt: event.time)
    case .set(let key, let value, let batch):
      let value = (try? host.value(value, in: batch)) ?? .null
      context.set(host.loop.keys.intern(key), value, at: event.time)
    case .folder(let path):
      context.keeping?.makesFolder(path)
      host.service { TemporaryFolders() }.keep(path, for: context.run)
    case .ended(let error, _, _): end(error?.error(on: host))
    }
  }

  private lazy var streams = ExecutionStreams(host) { [unowned host] number, reply, worker in
    host.workers.send(.stream(request: number, reply), to: worker)
  }

  func handle(_ request: StreamRequest, worker: Int) {
    if let context { streams.handle(request, context, worker: worker) }
  }

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
    if worker >= 0 { context?.log(error.message) }
    end(error)
  }

  private func end(_ error: FlowError?) {
    let ended = context
    context = nil
    streams.end()
    ended?.end(error)
  }
}
