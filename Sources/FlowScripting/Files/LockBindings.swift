internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A lock that a script has taken.
private final class HeldLock {
  let lock: FileLock
  var onRelease: (() -> Void)?

  init(_ lock: FileLock) { self.lock = lock }

  func release() {
    lock.release()
    onRelease.take()?()
  }
}

/// `flow.fs.lock`: locks of the kernel, which end with the op that has taken them, or with the script.
final class FileLocks: HostService {
  private let type: LuaObjectType<HeldLock>
  /// Those that aren't released, which a script may have dropped.
  private var open: [ObjectIdentifier: HeldLock] = [:]

  private init(_ host: ScriptHost) throws {
    func method(
      _ name: String, _ body: @escaping (HeldLock, LuaCall) throws -> LuaAnswer
    ) -> LuaMethod {
      LuaMethod(
        host.bind { host, call in
          guard let locks = host.existing(FileLocks.self), let lock = call.object(1, locks.type)
          else { throw Arguments(host, call, method: name).wrongSelf("lock") }
          return try body(lock, call)
        })
    }
    func release(_ lock: HeldLock, _ call: LuaCall) -> LuaAnswer {
      lock.release()
      return call.answer()
    }
    type = try host.vm.defineObjectType(
      "lock", of: HeldLock.self, methods: ["close": method("close", release)],
      metamethods: { _ in
        [
          "__close": method("__close", release),
          "__tostring": method("__tostring") { held, call in
            call.answer(
              .string("lock: \(held.lock.path)\(held.lock.isReleased ? " (closed)" : "")"))
          },
        ]
      })
  }

  /// `lock(path, options)`.
  static func lock(_ host: ScriptHost, _ call: LuaCall, _ arguments: Arguments) throws -> LuaAnswer
  {
    let path = try arguments.path(1)
    let options = try arguments.fileOptions(2, known: ["wait"])
    let waits = try options.boolean("wait") ?? true
    let locks = try host.service { try FileLocks(host) }
    return try host.offload(call) { cancellation throws(SystemError) in
      try FileLock(path, waits: waits, cancellation)
    } answer: { [unowned host] call, lock in
      call.answer(locks.keep(HeldLock(lock), call, host), locks.type)
    }
  }

  /// Keeps a lock until the op or task ends that has taken it, or until the script ends.
  private func keep(_ held: HeldLock, _ call: LuaCall, _ host: ScriptHost) -> HeldLock {
    let resource = OwnedResource(on: host.loop, onlyForOwner: true) { [weak held] done in
      held?.release()
      done()
    }
    let id = ObjectIdentifier(held)
    held.onRelease = { [weak self, weak resource] in
      self?.open[id] = nil
      resource?.noteReleased()
    }
    open[id] = held
    host.begin(resource, call.origin)
    return held
  }

  func hostWillClose(_ host: ScriptHost) {
    for held in open.values { held.lock.release() }
    open = [:]
  }
}
