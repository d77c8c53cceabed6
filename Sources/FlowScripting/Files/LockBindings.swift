internal import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// A lock that a script has taken.
private final class HeldLock {
  let lock: FileLock
  let holder: LockHolder
  var onRelease: (() -> Void)?

  init(_ lock: FileLock, _ holder: LockHolder) {
    self.lock = lock
    self.holder = holder
  }

  func release() {
    lock.release()
    onRelease.take()?()
  }
}

/// The code to which a lock belongs: a task's, an op's, or the main chunk's.
private enum LockHolder: Equatable {
  case task(UInt64)
  case op(UInt64)
  case chunk

  init(_ host: ScriptHost) {
    if let task = host.currentTask {
      self = .task(task.id)
    } else if let op = host.currentOp {
      self = .op(op.generation)
    } else {
      self = .chunk
    }
  }
}

/// Waits for a lock: for one of its own host until that ends, for any other one on a helper thread.
private final class LockWait: LuaWait {
  typealias Taken = Result<(lock: FileLock?, file: FileIdentity?), SystemError>

  private let host: ScriptHost
  private let locks: FileLocks
  private let path: ByteString
  private let waits: Bool
  private let holder: LockHolder
  private let cancellation = Cancellation()
  private var result: Result<HeldLock, SystemError>?
  /// The file whose lock it waited for, since that is free.
  private var free: FileIdentity?

  override var subject: String { "lock" }

  init(_ host: ScriptHost, _ locks: FileLocks, _ path: ByteString, waits: Bool) {
    self.host = host
    self.locks = locks
    self.path = path
    self.waits = waits
    holder = LockHolder(host)
    super.init()
  }

  // A host that is closed drops its waits.
  deinit { cancellation.request() }

  /// Takes the lock, or finds out who holds it; then calls `next`.
  func attempt(then next: @escaping () -> Void) {
    if isReady { return next() }
    host.loop.offload { [path, waits, cancellation] in
      if cancellation.isRequested { return .failure(SystemError(code: ECANCELED)) }
      do throws(SystemError) {
        // The error has to name the holder.
        if !waits { return .success((try FileLock(path, waits: false, cancellation), nil)) }
        let (lock, file) = try FileLock.take(path)
        return .success((lock, file))
      } catch {
        return .failure(error)
      }
    } then: { [self] (taken: Taken) in
      if !isReady { take(taken) }
      next()
    }
  }

  /// The lock that it waited for is free.
  func isFree(_ file: FileIdentity) {
    free = file
    locks.attempt(self)
  }

  private func take(_ taken: Taken) {
    switch taken {
    case .failure(let error): end(.failure(error))
    case .success(let (lock, file)):
      if let lock {
        end(.success(lock))
      } else if let file {
        wait(for: file)
      }
    }
  }

  private func wait(for file: FileIdentity) {
    guard let held = locks.lock(on: file) else { return waitForOthers() }
    if held.holder == holder {
      let text: ByteString = "can't lock '\(path)': this code holds it already"
      return end(.failure(SystemError(text, code: EDEADLK)))
    }
    locks.add(self, for: file)
    passOn(besides: file)
  }

  private func waitForOthers() {
    host.loop.offload { [path, cancellation] in
      do throws(SystemError) {
        return .success(try FileLock(path, waits: true, cancellation))
      } catch {
        return .failure(error)
      }
    } then: { [self] (result: Result<FileLock, SystemError>) in
      if !isReady { end(result) }
    }
  }

  private func end(_ result: Result<FileLock, SystemError>) {
    self.result = result.map { locks.hold($0, holder) }
    passOn(besides: (try? result.get())?.file)
    ready()
  }

  /// Another one takes the lock that was free, unless this one has it, or waits for it again.
  private func passOn(besides file: FileIdentity?) {
    guard let free = free.take(), free != file else { return }
    locks.isFree(free)
  }

  override func abandon() {
    cancellation.request()
    locks.remove(self)
    passOn(besides: nil)
  }

  /// The code that has waited is stopped.
  override func discard() {
    if case .success(let held) = result { held.release() }
    result = nil
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer {
    switch result.take() {
    case .success(let held): return locks.keep(held, call, host)
    case .failure(let error): throw host.raise(error, at: call.position)
    case nil: throw host.raise(.cancelled())
    }
  }
}

/// `flow.fs.lock`: locks of the kernel, which end with the op that has taken them, or with the script.
final class FileLocks: HostService {
  private let type: LuaObjectType<HeldLock>
  /// Those that aren't released, which a script may have dropped.
  private var open: [FileIdentity: HeldLock] = [:]
  /// Those that wait for such a lock, in the order in which they began, and those that attempt to take one.
  private var waiting: [FileIdentity: [LockWait]] = [:]
  private var attempts: [LockWait] = []

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
    let wait = LockWait(host, locks, path, waits: waits)
    locks.attempt(wait)
    return try call.wait(wait)
  }

  /// Has a wait attempt to take its lock. One does at a time, so that it is known here who holds the lock.
  fileprivate func attempt(_ wait: LockWait) {
    attempts.append(wait)
    if attempts.count == 1 { attemptNext() }
  }

  private func attemptNext() {
    attempts.first?.attempt { [weak self] in
      // The host may be closed.
      guard let self, !attempts.isEmpty else { return }
      attempts.removeFirst()
      attemptNext()
    }
  }

  /// Adds a wait for a lock of this host.
  fileprivate func add(_ wait: LockWait, for file: FileIdentity) {
    waiting[file, default: []].append(wait)
  }

  fileprivate func remove(_ wait: LockWait) {
    for (file, waits) in waiting {
      guard let place = waits.firstIndex(where: { $0 === wait }) else { continue }
      waiting[file] = waits.count == 1 ? nil : waits
      waiting[file]?.remove(at: place)
    }
  }

  /// The lock on a file is free: the first one that waits for it continues.
  fileprivate func isFree(_ file: FileIdentity) {
    guard var waits = waiting.removeValue(forKey: file), !waits.isEmpty else { return }
    let first = waits.removeFirst()
    if !waits.isEmpty { waiting[file] = waits }
    first.isFree(file)
  }

  /// The lock that this host has on a file, if it has one.
  fileprivate func lock(on file: FileIdentity) -> HeldLock? { open[file] }

  /// Notes a lock that was taken.
  fileprivate func hold(_ lock: FileLock, _ holder: LockHolder) -> HeldLock {
    let held = HeldLock(lock, holder)
    let file = lock.file
    open[file] = held
    held.onRelease = { [weak self] in self?.released(file) }
    return held
  }

  private func released(_ file: FileIdentity) {
    open[file] = nil
    isFree(file)
  }

  /// Keeps a lock until the op or task ends that has taken it, or until the script ends.
  fileprivate func keep(_ held: HeldLock, _ call: LuaCall, _ host: ScriptHost) -> LuaAnswer {
    let resource = OwnedResource(on: host.loop, onlyForOwner: true) { [weak held] done in
      held?.release()
      done()
    }
    let file = held.lock.file
    held.onRelease = { [weak self, weak resource] in
      self?.released(file)
      resource?.noteReleased()
    }
    host.begin(resource, call.origin)
    return call.answer(held, type)
  }

  func hostWillClose(_ host: ScriptHost) {
    for held in open.values { held.lock.release() }
    (open, waiting, attempts) = ([:], [:], [])
  }
}
