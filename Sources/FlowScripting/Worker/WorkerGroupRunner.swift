@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The share of a group that a worker executes, in that worker.
final class WorkerGroupRunner: ItemExecutorOwner {
  private let id: UInt64
  // Safe: the worker owns its groups, and drops them before it is released.
  private unowned(unsafe) let worker: WorkerRuntime
  private var host: ScriptHost { worker.host }
  private let group: WorkerGroup
  private var executor: ItemExecutor?
  /// The reason why items can't be executed here.
  private var refusal: FlowError?
  // Parts of the stored outcomes that can't travel unencoded, by their index there: as they were
  // when the item ended.
  private var outputs = WireBatch()
  private var tables: [(place: Int, wired: WireValue)] = []
  private var failures: [(place: Int, error: WireError)] = []
  /// The most recently read output, as it is in `outputs`: usually it is needed next.
  private var checked: (output: any OpaqueValue, wired: WireValue)?
  /// Items that can't be executed here, with the reason; they end with the next report.
  private var refused: [(index: Int32, error: WireError)] = []
  /// The temporary folders that items have made, with the indices of these.
  private var folders: [(index: Int32, path: ByteString)] = []
  /// The stop that came before the executor was made.
  private var earlyStop: FlowError?
  private var isClosed = false
  /// The start of its busy time since the last report; 0 while it is idle.
  private var busySince: Int64 = 0

  init(_ id: UInt64, _ worker: WorkerRuntime, _ group: WorkerGroup) {
    self.id = id
    self.worker = worker
    self.group = group
  }

  /// Begins to execute, as soon as there are items.
  func open(_ function: LuaReference) throws {
    let arguments = try group.arguments.values.map { try host.luaValue($0, in: group.arguments) }
    let table = arguments.isEmpty ? nil : try host.vm.makeTable(values: arguments)
    let body = ScriptOpBody(
      host, function, arguments: table, argumentCount: arguments.count)
    let op = Op(
      name: group.name, needs: try group.needs.map { try declaration($0) },
      gives: try group.gives.map { try declaration($0) }, body: body)
    var data: [(ByteString, FlowValue)] = []
    for (name, value) in zip(group.keys, group.data.values) {
      data.append((name, try host.value(value, in: group.data)))
    }
    executor = ItemExecutor(
      op, on: host.loop, data: data, itemKey: group.itemKey, collectKey: group.collectKey,
      limit: group.limit, stopsAtFailure: group.stopsAtFailure,
      endingError: group.endingError?.error(on: host), lineage: group.lineage,
      spans: group.spans, owner: self)
    if let earlyStop { executor?.cancel(earlyStop) }
  }

  private func declaration(_ declared: WorkerDeclaration) throws -> Declaration {
    Declaration(declared.name, try FlowValueType.parse(declared.type))
  }

  /// Makes all items end with an error.
  func refuse(_ error: FlowError) { refusal = error }

  /// The run of its items.
  var run: Run? { executor?.run }

  var isExecuting: Bool { (executor?.count ?? 0) > 0 }

  /// Receives items.
  func add(first: Int, _ batch: WireBatch, labels: ContiguousArray<ByteString>) {
    executor?.setLabels(first: first, labels)
    if busySince == 0 { busySince = LuaVM.monotonicTime }
    var values: ContiguousArray<FlowValue> = []
    values.reserveCapacity(batch.values.count)
    let host = host
    for (place, wired) in batch.values.enumerated() {
      if refusal == nil, let plain = FlowValue(plain: wired) {
        values.append(plain)
        continue
      }
      do {
        if let refusal { throw refusal }
        values.append(try host.value(wired, in: batch))
      } catch {
        // An item that can't be made here ends, and splits the batch.
        executor?.add(first: first + place - values.count, values)
        values.removeAll()
        refused.append(
          (
            Int32(truncatingIfNeeded: first + place),
            WireError(host.flowError(unpacking: error), from: host)
          ))
      }
    }
    executor?.add(first: first + batch.values.count - values.count, values)
  }

  /// Drops items that haven't begun, and stops running ones.
  func cancel(_ error: FlowError) {
    if let executor {
      executor.cancel(error)
    } else if earlyStop == nil {
      earlyStop = error
    }
  }

  /// No more items will come: ends the tasks that they have left running.
  func drop() {
    isClosed = true
    executor?.end()
    executor = nil
  }

  // MARK: Events

  func problem(with output: any OpaqueValue) -> FlowError? {
    do throws(WireProblem) {
      checked = (output, try host.wire(.opaque(output), &outputs))
      return nil
    } catch {
      return error.failure("the output <\(group.collectKey ?? "")>")
    }
  }

  func itemEnded(at place: Int, of ends: borrowing ItemEnds) {
    defer { checked = nil }
    if let failure = ends.failures.last, failure.place == place {
      failures.append((place, WireError(failure.error, from: host)))
      return
    }
    let output = ends.outputs[place]
    if case .opaque(let opaque) = output, let checked, checked.output === opaque {
      tables.append((place, checked.wired))
      return
    }
    do throws(WireProblem) {
      tables.append((place, try host.wire(output, &outputs)))
    } catch {
      failures.append(
        (place, WireError(error.failure("the output"), from: host)))
    }
  }

  func endsAreDue(at time: Int64) {
    if isClosed { return }
    worker.itemEnded(at: time)
    executor?.dueTime = worker.nextReport
  }

  /// Whether there is something to report.
  var hasNews: Bool { !refused.isEmpty || !folders.isEmpty || executor?.hasNews == true }

  /// An item has made a temporary folder, which stays until the run of its group ends.
  func note(folder path: ByteString, ofItem number: Int) {
    folders.append((Int32(truncatingIfNeeded: number - 1), path))
  }

  /// The events since the last call.
  func takeEvents() -> WorkerReport.GroupEvents {
    let now = LuaVM.monotonicTime
    let busy = busySince == 0 ? 0 : now - busySince
    busySince = isExecuting ? now : 0
    let ends = executor?.takeEnds() ?? ItemEnds()
    var indices = ends.indices
    outputs.values.reserveCapacity(ends.count + refused.count)
    let account = worker.host.loop.memory
    for output in ends.outputs {
      if let account, case .bytes(let text) = output { account.handOver(text) }
      outputs.values.append(WireValue(plain: output) ?? .null)
    }
    for (place, wired) in tables { outputs.values[place] = wired }
    for (index, error) in refused {
      failures.append((indices.count, error))
      indices.append(index)
      outputs.values.append(.null)
    }
    defer {
      outputs = WireBatch()
      tables = []
      failures = []
      refused = []
      folders = []
      checked = nil
    }
    return WorkerReport.GroupEvents(
      id: id, slice: executor?.takeSlice() ?? LogSlice(), indices: indices, outputs: outputs,
      failures: failures, folders: folders, busy: busy)
  }
}
