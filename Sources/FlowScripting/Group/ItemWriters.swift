@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The iterators of scripts whose items groups execute.
final class ItemWriters: HostService {
  /// A Lua function that calls an iterator again and again, and passes on what it returns.
  private let runner: LuaReference
  private let streams: Streams

  /// The streams of the iterators that haven't ended, by their numbers.
  private final class Streams {
    private var all: [Int64: ItemStream] = [:]
    private var last: Int64 = 0
    /// The one that was asked for last: one iterator gives many items.
    private var latest: (id: Int64, stream: ItemStream)?

    func add(_ stream: ItemStream) -> Int64 {
      last += 1
      all[last] = stream
      return last
    }

    func remove(_ id: Int64) {
      all[id] = nil
      if latest?.id == id { latest = nil }
    }

    subscript(id: Int64) -> ItemStream? {
      if let latest, latest.id == id { return latest.stream }
      guard let stream = all[id] else { return nil }
      latest = (id, stream)
      return stream
    }
  }

  private init(_ host: ScriptHost) throws {
    let streams = Streams()
    self.streams = streams
    let put = try host.vm.makeFunction(
      host.bind { _, call in
        guard let id = call.integer(1), let stream = streams[id] else { return call.answer() }
        stream.put(try call.engineValue(2))
        return stream.hasRoom ? call.answer() : try call.wait(RoomWait(stream))
      })
    let maker = try host.vm.loadOwn(
      """
      local put = ...
      return function(id, iterator)
        local item = iterator()
        while item ~= nil do
          put(id, item)
          item = iterator()
        end
      end
      """, name: "=[flow]")
    guard case .reference(let made)? = try host.vm.call(maker, [.reference(put)]).first else {
      throw LuaError(.runtime, "no function for iterators was made")
    }
    runner = made
  }

  /// Starts to call an iterator.
  static func begin(
    _ iterator: LuaReference, _ stream: ItemStream, of owner: OwnedTasks, _ host: ScriptHost
  ) throws -> AnyFlowTask {
    let writers = try host.service { try ItemWriters(host) }
    let streams = writers.streams
    let id = streams.add(stream)
    let task = SpawnedTask(
      host, try host.vm.uniqueReference(to: writers.runner),
      [.integer(id), .reference(iterator)])
    owner.add(task)
    task.begin()
    task.observe(WriterEnd { streams.remove(id) })
    return task
  }
}

/// Forgets the stream of an iterator that has ended.
private final class WriterEnd: TaskObserver {
  private let body: () -> Void

  init(_ body: @escaping () -> Void) { self.body = body }

  func run() { body() }
  func taskEnded(_ task: AnyFlowTask) { body() }
}

/// Waits until a group can execute another item.
private final class RoomWait: LuaWait {
  private let stream: ItemStream
  private var room: RoomWaiter?

  init(_ stream: ItemStream) {
    self.stream = stream
    super.init()
    room = stream.whenRoom { [unowned self] in ready() }
  }

  override var subject: String { "room for an item" }

  override func abandon() { if let room { stream.stopWaiting(room) } }

  override func finish(_ call: LuaCall) throws -> LuaAnswer { call.answer() }
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
