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
  private var ends: ContiguousArray<(index: Int32, error: WireError?)> = []
  private var outputs = WireBatch()
  /// The output that was looked at last, as it stands among `outputs`: most are asked for next.
  private var checked: (output: any OpaqueValue, wired: WireValue)?
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
      limit: group.limit, stopsAtFailure: group.stopsAtFailure, owner: self)
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
    for (place, wired) in batch.values.enumerated() {
      do {
        if let refusal { throw refusal }
        values.append(try host.value(wired, in: batch))
      } catch {
        // One that can't be made here ends, and splits the batch.
        executor?.add(first: first + place - values.count, values)
        values.removeAll()
        ended(first + place, output: .null, host.flowError(unpacking: error))
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

  func problem(with output: Value) -> FlowError? {
    guard case .opaque(let opaque) = output else { return nil }
    do throws(WireProblem) {
      checked = (opaque, try host.wire(output, &outputs))
      return nil
    } catch {
      return FlowError(.error, error.message("the output <\(group.collectKey ?? "")>"))
    }
  }

  func itemEnded(_ index: Int, output: Value, error: FlowError?, time: Int64) {
    ended(index, output: output, error)
    if !isClosed { site.itemEnded(at: time) }
  }

  private func ended(_ index: Int, output: Value, _ error: FlowError?) {
    var wireError = error.map { WireError($0, from: host) }
    var wired = WireValue.null
    if error == nil, case .opaque(let opaque) = output, let checked, checked.output === opaque {
      wired = checked.wired
    } else if error == nil {
      do throws(WireProblem) {
        wired = try host.wire(output, &outputs)
      } catch {
        wireError = WireError(FlowError(.error, error.message("the output")), from: host)
      }
    }
    ends.append((Int32(truncatingIfNeeded: index), wireError))
    outputs.values.append(wired)
    checked = nil
  }

  /// Whether there is something to tell.
  var hasNews: Bool { !ends.isEmpty || executor?.hasNews == true }

  /// What has happened since this was called last.
  func takeEvents() -> WorkerReport.GroupEvents {
    let now = LuaVM.monotonicTime
    let busy = busySince == 0 ? 0 : now - busySince
    busySince = isExecuting ? now : 0
    let events = WorkerReport.GroupEvents(
      id: id, slice: executor?.takeSlice() ?? LogSlice(), ends: ends, outputs: outputs, busy: busy)
    ends = []
    outputs = WireBatch()
    checked = nil
    return events
  }
}
