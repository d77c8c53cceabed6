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

/// The code to which a lock belongs: a task's, an op's, a run's callbacks', or the main chunk's.
private enum LockHolder: Equatable {
  case task(UInt64)
  case op(UInt64)
  case run(UInt64)
  case chunk

  init(_ host: ScriptHost) {
    if let task = host.currentTask {
      self = .task(task.id)
    } else if let op = host.currentOp {
      self = .op(op.generation)
    } else if let run = host.currentRun {
      self = .run(run.id)
    } else {
      self = .chunk
    }
  }
}

/// Waits for a lock, in the queue of its path.
private final class LockWait: LuaWait {
  private let host: ScriptHost
  private let locks: FileLocks
  let path: ByteString
  /// Whether it waits for the one that holds the lock.
  let waits: Bool
  let holder: LockHolder
  /// Its place in the line of its queue.
  var place: UInt64 = 0
  private var result: Result<HeldLock, SystemError>?

  override var subject: String { "lock" }

  init(_ host: ScriptHost, _ locks: FileLocks, _ path: ByteString, waits: Bool) {
    self.host = host
    self.locks = locks
    self.path = path
    self.waits = waits
    holder = LockHolder(host)
    super.init()
  }

  func end(_ result: Result<HeldLock, SystemError>) {
    self.result = result
    ready()
  }

  override func abandon() { locks.leave(self) }

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

/// Waits in the order in which they came; each of them can leave at any time.
private struct LockLine {
  private var waits: [UInt64: LockWait] = [:]
  private var first: UInt64 = 0
  /// The place of the next one that comes.
  private(set) var end: UInt64 = 0

  var isEmpty: Bool { waits.isEmpty }

  mutating func append(_ wait: LockWait) {
    wait.place = end
    waits[end] = wait
    end += 1
  }

  mutating func remove(_ wait: LockWait) { waits[wait.place] = nil }

  mutating func removeFirst() -> LockWait? {
    guard !waits.isEmpty else { return nil }
    while first < end {
      first += 1
      if let wait = waits.removeValue(forKey: first - 1) { return wait }
    }
    return nil
  }

  /// Those that have come since the line ended at a place.
  func since(_ place: UInt64) -> [LockWait] { (place..<end).compactMap { waits[$0] } }
}

/// Those that want the lock on one path. One helper thread at a time works for them, so a file that doesn't answer keeps
/// only them waiting.
private final class LockQueue {
  let path: ByteString
  var waiting = LockLine()
  /// Those that don't wait for the one that holds the lock; they come first.
  var hasty = LockLine()
  /// Whether a helper thread works for it.
  var isBusy = false
  /// Of the helper thread that waits for another process.
  var poll: Cancellation?
  /// The end of `waiting` up to which nobody holds the lock that it waits for.
  var compared: UInt64 = 0

  var isEmpty: Bool { waiting.isEmpty && hasty.isEmpty }

  init(_ path: ByteString) { self.path = path }

  // A host that is closed drops its queues.
  deinit { poll?.request() }
}

/// `flow.fs.lock`: locks of the kernel, which end with the op that has taken them, or with the script.
final class FileLocks: HostService {
  private let type: LuaObjectType<HeldLock>
  /// Those that aren't released, which a script may have dropped.
  private var open: [FileIdentity: HeldLock] = [:]
  /// By the path; the paths of those that wait for a lock of this host, and of those that wait for another process.
  private var queues: [ByteString: LockQueue] = [:]
  private var waiting: [FileIdentity: Set<ByteString>] = [:]
  private var polling: Set<ByteString> = []
  private let loop: FlowEventLoop

  private init(_ host: ScriptHost) throws {
    loop = host.loop
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
    locks.join(wait)
    return try call.wait(wait)
  }

  private func join(_ wait: LockWait) {
    let queue = queues[wait.path] ?? LockQueue(wait.path)
    queues[wait.path] = queue
    if wait.waits {
      queue.waiting.append(wait)
    } else {
      queue.hasty.append(wait)
      queue.poll?.request()
    }
    proceed(queue)
  }

  fileprivate func leave(_ wait: LockWait) {
    guard let queue = queues[wait.path] else { return }
    if wait.waits { queue.waiting.remove(wait) } else { queue.hasty.remove(wait) }
    guard queue.isEmpty else { return }
    queue.poll?.request()
    proceed(queue)
  }

  /// Has a helper thread work for a queue, unless one does or nobody is left in it.
  private func proceed(_ queue: LockQueue) {
    guard !queue.isBusy else { return }
    if let wait = queue.hasty.removeFirst() {
      takeNow(wait, queue)
    } else if !queue.waiting.isEmpty {
      take(queue)
    } else if queues[queue.path] === queue {
      queues[queue.path] = nil
    }
  }

  /// Runs work for a queue on a helper thread, then `done`, unless the host is closed.
  private func offload<Value: Sendable>(
    for queue: LockQueue, _ work: @escaping @Sendable () throws(SystemError) -> Value,
    then done: @escaping (FileLocks, LockQueue, Result<Value, SystemError>) -> Void
  ) {
    queue.isBusy = true
    loop.offload {
      do throws(SystemError) { return .success(try work()) } catch { return .failure(error) }
    } then: { [weak self, weak queue] (result: Result<Value, SystemError>) in
      guard let self, let queue else { return }
      queue.isBusy = false
      done(self, queue, result)
    }
  }

  private func takeNow(_ wait: LockWait, _ queue: LockQueue) {
    offload(for: queue) { [path = queue.path] () throws(SystemError) in
      try FileLock(path, waits: false, Cancellation())
    } then: { locks, queue, result in
      if !wait.isReady {
        wait.end(result.map { locks.hold($0, wait.holder) })
      } else if case .success(let lock) = result {
        lock.release()
      }
      locks.proceed(queue)
    }
  }

  /// Takes the lock for the first one that waits, or finds out who holds it.
  private func take(_ queue: LockQueue) {
    offload(for: queue) { [path = queue.path] () throws(SystemError) in
      try FileLock.take(path)
    } then: { locks, queue, result in
      switch result {
      case .failure(let error): locks.end(queue, .failure(error))
      case .success((let lock?, _)): locks.end(queue, .success(lock))
      case .success((nil, let file)): locks.wait(queue, for: file)
      }
    }
  }

  /// Ends the first wait, for which a helper thread had worked.
  private func end(_ queue: LockQueue, _ result: Result<FileLock, SystemError>) {
    if let wait = queue.waiting.removeFirst() {
      // Those that wait already don't hold it.
      if case .success = result { queue.compared = queue.waiting.end }
      wait.end(result.map { hold($0, wait.holder) })
    } else if case .success(let lock) = result {
      lock.release()
    }
    proceed(queue)
  }

  /// Waits until the lock on a file is free: here if this host has it, else on a helper thread.
  private func wait(_ queue: LockQueue, for file: FileIdentity) {
    guard let held = open[file] else {
      return queue.hasty.isEmpty && !queue.isEmpty ? poll(queue) : proceed(queue)
    }
    waiting[file, default: []].insert(queue.path)
    let others = queue.waiting.since(queue.compared)
    queue.compared = queue.waiting.end
    for wait in others where wait.holder == held.holder {
      queue.waiting.remove(wait)
      let text: ByteString = "can't lock '\(queue.path)': this code holds it already"
      wait.end(.failure(SystemError(text, code: EDEADLK)))
    }
    if !queue.hasty.isEmpty || queue.isEmpty { proceed(queue) }
  }

  private func poll(_ queue: LockQueue) {
    let cancellation = Cancellation()
    queue.poll = cancellation
    polling.insert(queue.path)
    offload(for: queue) { [path = queue.path] () throws(SystemError) in
      try FileLock(path, waits: true, cancellation)
    } then: { locks, queue, result in
      queue.poll = nil
      locks.polling.remove(queue.path)
      if case .failure(let error) = result, error.isCancellation {
        locks.proceed(queue)
      } else {
        locks.end(queue, result)
      }
    }
  }

  /// Notes a lock that was taken.
  private func hold(_ lock: FileLock, _ holder: LockHolder) -> HeldLock {
    let held = HeldLock(lock, holder)
    let file = lock.file
    open[file] = held
    held.onRelease = { [weak self] in self?.released(file) }
    // Those that wait for another process may now wait for this lock, which needs no thread.
    for path in polling { queues[path]?.poll?.request() }
    return held
  }

  private func released(_ file: FileIdentity) {
    open[file] = nil
    for path in waiting.removeValue(forKey: file) ?? [] {
      if let queue = queues[path] { proceed(queue) }
    }
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
    (open, queues, waiting, polling) = ([:], [:], [:], [])
  }
}
