internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.on_event`: functions of a script that are called with events of runs.
///
/// A function can't change what happens: it is called in a later turn of the loop, with a copy of the event, and an error
/// is a warning. Events wait meanwhile, each function gets its own in their order, one after another.
final class EventListener: EventSink, TaskObserver {
  private unowned let host: ScriptHost
  private let function: LuaReference
  /// The values that fields may have; a field that isn't here may have any.
  private let filter: [RunEvent.Field: [FlowValue]]
  private var waiting: ContiguousArray<RunEvent> = []
  /// The index of the next one in `waiting`.
  private var next = 0
  private var isScheduled = false
  private var running: AnyFlowTask?

  static func install(in host: ScriptHost) {
    host.define("on_event") { host, call in
      let arguments = Arguments(host, call, "on_event")
      if host.existing(HostRequests.self)?.isOfRequest == true {
        throw host.usage(
          call, "bad use of 'on_event' (a request of a host doesn't see the events of others)")
      }
      let isAlone = call.kind(1) == .function && call.count == 1
      let listener = EventListener(
        host, try arguments.function(isAlone ? 1 : 2), isAlone ? [:] : try filter(arguments))
      host.loop.eventSinks.append(listener)
      return call.answer()
    }
  }

  private init(
    _ host: ScriptHost, _ function: LuaReference, _ filter: [RunEvent.Field: [FlowValue]]
  ) {
    self.host = host
    self.function = function
    self.filter = filter
  }

  /// `{ kind = "finish", op = { "UploadOp", "ScaleOp" } }`.
  private static func filter(_ arguments: Arguments) throws -> [RunEvent.Field: [FlowValue]] {
    let known = RunEvent.Field.allCases
    let fields = try arguments.options(1, known: known.map { $0.name.description })
    var filter: [RunEvent.Field: [FlowValue]] = [:]
    for field in known {
      guard let value = fields.value(field.name) else { continue }
      var values: [LuaValue] = [value]
      if case .reference(let list) = value, let count = arguments.host.vm.listCount(list) {
        values = try (0..<count).map { try arguments.host.vm.element($0 + 1, of: list) }
      }
      filter[field] = try values.map { value in
        switch value {
        case .string(let text):
          if field == .kind { try check(kind: text, arguments) }
          return .bytes(text)
        case .integer(let number): return .integer(number)
        case .number(let number): return .number(number)
        default: throw fields.wrong(field.name, expected: "string, number or list of them")
        }
      }
    }
    return filter
  }

  private static func check(kind: ByteString, _ arguments: Arguments) throws {
    let kinds = RunEvent.Kind.allCases.map(\.name)
    if kinds.contains(kind) { return }
    let hint = NearestName.of(kind, in: kinds).map { " (did you mean '\($0)'?)" } ?? ""
    throw arguments.wrong(1, "field 'kind': there are no events of the kind '\(kind)'\(hint)")
  }

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    guard matches(event) else { return }
    waiting.append(event)
    schedule()
  }

  private func matches(_ event: RunEvent) -> Bool {
    if filter.isEmpty { return true }
    var count = 0
    event.forEachField { field, value in
      if filter[field]?.contains(value) == true { count += 1 }
    }
    return count == filter.count
  }

  private func schedule() {
    guard !isScheduled, running == nil else { return }
    isScheduled = true
    // It holds the listener until all that has come is delivered; the loop ends with the host.
    host.loop.enqueue {
      self.isScheduled = false
      self.deliver()
    }
  }

  /// Calls the function with what waits, up to its first wait.
  private func deliver() {
    while next < waiting.count {
      let event = waiting[next]
      next += 1
      guard let function = try? host.vm.uniqueReference(to: function),
        let table = try? RunBindings(host: host).table(of: event)
      else { continue }
      let call = host.spawn(function, [.reference(table)])
      call.markObserved()
      if call.isConcluded {
        check(call)
      } else {
        running = call
        return call.observe(self)
      }
    }
    waiting.removeAll(keepingCapacity: waiting.count < 1024)
    next = 0
  }

  func run() {
    guard let ended = running else { return }
    running = nil
    check(ended)
    deliver()
  }

  private func check(_ call: AnyFlowTask) {
    guard let error = call.error, error.kind != .cancelled else { return }
    host.warnOnce("a function of flow.on_event has failed: \(error.message)")
  }
}
