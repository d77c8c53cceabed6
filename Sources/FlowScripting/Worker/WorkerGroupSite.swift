@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// The share of a group that a worker executes, as the worker has it.
final class WorkerGroupSite: ItemExecutorOwner {
  private let id: UInt64
  // Safe: the site holds its groups, and drops them before it goes.
  private unowned(unsafe) let site: WorkerSite
  private var host: ScriptHost { site.host }
  private let group: WorkerGroup
  private var executor: ItemExecutor?
  /// Why items can't be executed here.
  private var refusal: FlowError?
  // What can't go as it is of the ends that the executor keeps, by their places there: as it was when
  // the item ended.
  private var outputs = WireBatch()
  private var tables: [(place: Int, wired: WireValue)] = []
  private var failures: [(place: Int, error: WireError)] = []
  /// The output that was looked at last, as it stands among `outputs`: most are asked for next.
  private var checked: (output: any OpaqueValue, wired: WireValue)?
  /// Items that can't be executed here, with the reason; they end when the next report goes.
  private var refused: [(index: Int32, error: WireError)] = []
  private var isClosed = false
  /// When it was busy last, and since the last report.
  private var busySince: Int64 = 0

  init(_ id: UInt64, _ site: WorkerSite, _ group: WorkerGroup) {
    self.id = id
    self.site = site
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
    var data: [(ByteString, Value)] = []
    for (name, value) in zip(group.keys, group.data.values) {
      data.append((name, try host.value(value, in: group.data)))
    }
    executor = ItemExecutor(
      op, on: host.loop, data: data, itemKey: group.itemKey, collectKey: group.collectKey,
      limit: group.limit, stopsAtFailure: group.stopsAtFailure,
      endingError: group.endingError?.error(on: host), owner: self)
  }

  private func declaration(_ declared: WorkerDeclaration) throws -> Declaration {
    Declaration(declared.name, try ValueType.parse(declared.type))
  }

  /// Has all items end with an error.
  func refuse(_ error: FlowError) { refusal = error }

  /// The run that its items are part of.
  var run: Run? { executor?.run }

  var isExecuting: Bool { (executor?.count ?? 0) > 0 }

  /// Takes items.
  func add(first: Int, _ batch: WireBatch) {
    if busySince == 0 { busySince = LuaVM.monotonicTime }
    var values: ContiguousArray<Value> = []
    values.reserveCapacity(batch.values.count)
    let host = host
    for (place, wired) in batch.values.enumerated() {
      if refusal == nil, let plain = Value(plain: wired) {
        values.append(plain)
        continue
      }
      do {
        if let refusal { throw refusal }
        values.append(try host.value(wired, in: batch))
      } catch {
        // One that can't be made here ends, and splits the batch.
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

  /// Drops what hasn't begun, and stops what executes.
  func cancel(_ error: FlowError) { executor?.cancel(error) }

  /// No more items come: what they have left ends.
  func drop() {
    isClosed = true
    executor?.end()
    executor = nil
  }

  // MARK: What happens

  func problem(with output: any OpaqueValue) -> FlowError? {
    do throws(WireProblem) {
      checked = (output, try host.wire(.opaque(output), &outputs))
      return nil
    } catch {
      return FlowError(.error, error.message("the output <\(group.collectKey ?? "")>"))
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
        (place, WireError(FlowError(.error, error.message("the output")), from: host)))
    }
  }

  func endsAreDue(at time: Int64) {
    if isClosed { return }
    site.itemEnded(at: time)
    executor?.dueTime = site.nextReport
  }

  /// Whether there is something to tell.
  var hasNews: Bool { !refused.isEmpty || executor?.hasNews == true }

  /// What has happened since this was called last.
  func takeEvents() -> WorkerReport.GroupEvents {
    let now = LuaVM.monotonicTime
    let busy = busySince == 0 ? 0 : now - busySince
    busySince = isExecuting ? now : 0
    let ends = executor?.takeEnds() ?? ItemEnds()
    var indices = ends.indices
    outputs.values.reserveCapacity(ends.count + refused.count)
    for output in ends.outputs { outputs.values.append(WireValue(plain: output) ?? .null) }
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
      checked = nil
    }
    return WorkerReport.GroupEvents(
      id: id, slice: executor?.takeSlice() ?? LogSlice(), indices: indices, outputs: outputs,
      failures: failures, busy: busy)
  }
}
