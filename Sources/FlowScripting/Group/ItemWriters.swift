@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The iterators of scripts whose items groups execute.
final class ItemWriters: HostService {
  /// A Lua function that calls an iterator again and again, and passes on what it returns.
  private let runner: LuaReference
  private let known = KnownType()

  /// The type of the objects that the function gets, for their methods, which are made before it.
  private final class KnownType {
    var type: LuaObjectType<ItemStream>?
  }

  private init(_ host: ScriptHost) throws {
    known.type = try host.vm.defineObjectType(
      "items", of: ItemStream.self, methods: host.bind(Self.methods(known)))
    // In Lua, because that calls a function of Lua fastest, and the function may wait.
    runner = try host.vm.loadOwn(
      """
      local items, iterator = ...
      local put, wait = items.put, items.wait
      local item = iterator()
      while item ~= nil do
        if not put(items, item) then wait(items) end
        item = iterator()
      end
      """, name: "=[flow]")
  }

  /// `items:put(item)` returns whether the iterator may be called for another one at once; `items:wait()` waits until it may.
  private static func methods(_ known: KnownType) -> LuaFields<BoundMethod> {
    func stream(_ host: ScriptHost, _ call: LuaCall, _ method: String) throws -> ItemStream {
      guard let type = known.type, let stream = call.object(1, type) else {
        throw Arguments(host, call, method: method).wrongSelf("items")
      }
      return stream
    }
    return [
      "put": BoundMethod(
        direct: { host, call in
          guard call.hasValue, let type = known.type, let stream = call.uncountedObject(type),
            !(call.isString && host.vm.hasMemoryLimit)
          else { return call.pass() }
          let item = FlowValue(call.value)
          return call.answer(
            stream._withUnsafeGuaranteedRef {
              $0.put(item)
              return $0.hasRoom && host.loop.now() < $0.turnEnd
            })
        }
      ) { host, call in
        let item = try call.engineValue(2)
        if case .bytes = item { try host.checkMemory() }
        let stream = try stream(host, call, "put")
        stream.put(item)
        return call.answer(.boolean(stream.hasRoom && host.loop.now() < stream.turnEnd))
      },
      "wait": BoundMethod { host, call in
        try call.wait(RoomWait(try stream(host, call, "wait"), host.loop))
      },
    ]
  }

  /// Starts to call an iterator.
  static func begin(
    _ iterator: LuaReference, _ stream: ItemStream, of owner: OwnedTasks, _ host: ScriptHost
  ) throws -> AnyFlowTask {
    let writers = try host.service { try ItemWriters(host) }
    guard let type = writers.known.type else { throw LuaError(.closed, "the Lua state is closed") }
    let task = SpawnedTask(
      host, try host.vm.uniqueReference(to: writers.runner),
      [try host.vm.value(of: stream, type), .reference(iterator)])
    owner.add(task)
    stream.beginTurn(on: host.loop)
    task.begin()
    return task
  }
}

extension ItemStream {
  /// An iterator is called for several items at a time, because each wait costs as much as a short call. It may be slow, and
  /// its first items have to start meanwhile: after a millisecond others run.
  fileprivate func beginTurn(on loop: FlowEventLoop) { turnEnd = loop.now() &+ 1_000_000 }
}

/// Waits until a group can execute another item, at least until others have run.
private final class RoomWait: LuaWait, GroupWait, LoopJob {
  private let stream: ItemStream
  private let loop: FlowEventLoop
  private var room: RoomWaiter?
  private var isAbandoned = false

  init(_ stream: ItemStream, _ loop: FlowEventLoop) {
    self.stream = stream
    self.loop = loop
    super.init()
    if stream.hasRoom {
      loop.enqueue(self)
    } else {
      room = stream.whenRoom { [unowned self] in ready() }
    }
  }

  override var subject: String { "room for an item" }

  func run() { if !isAbandoned { ready() } }

  override func abandon() {
    isAbandoned = true
    if let room { stream.stopWaiting(room) }
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    stream.beginTurn(on: loop)
    return call.answer()
  }
}

extension ScriptValue: ItemSequence {
  func write(to stream: ItemStream, of owner: OwnedTasks, on loop: FlowEventLoop) -> AnyFlowTask? {
    guard reference.kind == .function || reference.vm.hasMetafield("__call", reference),
      let host = reference.vm.scheduler as? ScriptHost
    else { return nil }
    do {
      return try ItemWriters.begin(reference, stream, of: owner, host)
    } catch {
      return FlowTask<FlowValue>.failed(FlowError.from(error), on: loop)
    }
  }
}
