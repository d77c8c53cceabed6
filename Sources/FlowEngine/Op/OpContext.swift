/// One execution of an op, as its body sees it. Confined to its loop's thread.
///
/// Contexts are reused once nothing else holds them. A body that keeps one beyond its end sees it
/// closed: it never becomes a later execution's, and writing to it does nothing.
public final class OpContext {
  enum Phase: UInt8 {
    case idle, inBody, suspended, ended
  }

  /// Where `EventLoop.context(slot:generation:)` finds this context.
  public let slot: UInt32

  // Unchecked exclusivity, here and below: the loop's thread alone touches them, and no access
  // lasts into a call of a body. The checks would cost more than the accesses.

  /// Unique to the execution on its loop; moves on when the op has settled.
  @exclusivity(unchecked) public private(set) var generation: UInt64 = 0
  /// The body's own, such as a coroutine; released when the body has ended.
  @exclusivity(unchecked) public var state: AnyObject?
  /// 1-based in a group, 0 outside of one.
  @exclusivity(unchecked) public private(set) var index = 0
  /// 1-based.
  @exclusivity(unchecked) public private(set) var attempt = 1

  // Safe: a strand owns its context and clears this in its deinit.
  unowned(unsafe) var strand: Strand?
  // Safe: the blueprint that holds the op is alive while the context is open; a context that
  // somebody keeps gets `keptOp`.
  private unowned(unsafe) var current: Op?
  private var keptOp: Op?
  private var keptRun: Run?

  // Unchecked exclusivity: as above.

  @exclusivity(unchecked) private(set) var phase: Phase = .idle
  @exclusivity(unchecked) private(set) var isSettled = true
  @exclusivity(unchecked) private(set) var outcome: FlowError?
  @exclusivity(unchecked) private var scope: UInt32 = 0
  @exclusivity(unchecked) private var position: UInt32 = 0
  @exclusivity(unchecked) private var began: Int64 = 0

  init(slot: UInt32) {
    self.slot = slot
  }

  // MARK: What it belongs to

  public var run: Run {
    guard let run = strand?.run ?? keptRun else {
      misuse("an OpContext was used that belongs to no execution")
    }
    return run
  }

  public var op: Op {
    guard let op = keptOp ?? current else {
      misuse("an OpContext was used that belongs to no execution")
    }
    return op
  }

  public var loop: EventLoop { run.loop }

  /// The data of the flow, or of the item in a group.
  public var bucket: DataBucket { strand?.bucket ?? run.data }

  /// `UploadOp`, or `UploadOp #3` in a group.
  public var displayName: ByteString { index == 0 ? op.name : "\(op.name) #\(index)" }

  /// Whether the op is still going on: neither settled nor ended.
  public var isOpen: Bool { !isSettled }

  // MARK: Data

  public func get(_ key: Key) -> Value? { bucket.get(key) }

  public func has(_ key: Key) -> Bool { bucket.has(key) }

  /// Stores and logs `value`; `.null` removes the key. Does nothing once the op has settled.
  public func set(_ key: Key, _ value: Value) {
    // The bucket checks the thread.
    guard let strand, !isSettled else { return }
    strand.store(key, value, scope: scope, position: position, attempt: attempt)
  }

  /// The value of `key`; when it is absent or of another type, the op fails right there.
  public func require(_ key: Key, _ type: ValueType?) -> Result<Value, FlowError> {
    let error: FlowError
    if let value = bucket.get(key) {
      guard let wanted = type?.mismatch(value) else { return .success(value) }
      error = .mismatchedInput(
        bucket.keys.name(of: key), bucket.shown(value, of: key), wanted: wanted)
    } else {
      if let type, type.isOptional { return .success(.null) }
      error = .missingInput(bucket.keys.name(of: key))
    }
    fail(error)
    return .failure(outcome ?? error)
  }

  /// Adds a line of the op to the log. Does nothing once the op has settled.
  public func log(_ text: ByteString) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    strand.log.append(
      .log, time: strand.loop.now(), scope: scope, position: position, attempt: attempt,
      first: strand.log.payload(text))
  }

  public func log(_ bytes: UnsafeBufferPointer<UInt8>) {
    log(ByteString(bytes))
  }

  // MARK: The end

  /// Settles the op with `error` at this call; the body may run on. The first settle wins.
  public func fail(_ error: FlowError) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    settle(error)
  }

  /// Says that the body has ended: settles the op if it isn't yet, then what comes next goes on.
  ///
  /// Within `OpBody.start` that is after it returns, else as a job of the loop.
  public func end(_ error: FlowError? = nil) {
    guard let strand, phase == .inBody || phase == .suspended else { return }
    strand.loop.checkThread()
    settle(error)
    let wasSuspended = phase == .suspended
    phase = .ended
    if wasSuspended { strand.wake(.op) }
  }

  // MARK: For the engine

  @inline(__always)
  func begin(
    _ op: Op, generation: UInt64, scope: UInt32, position: UInt32, index: Int, time: Int64
  ) {
    self.generation = generation
    current = op
    self.scope = scope
    self.position = position
    self.index = index
    began = time
    isSettled = false
    if outcome != nil { outcome = nil }
    phase = .inBody
  }

  /// Notes that `start` has returned; answers whether the body has ended.
  func bodyReturned(_ progress: OpProgress) -> Bool {
    if progress == .suspended, phase == .inBody {
      phase = .suspended
      return false
    }
    settle(nil)
    phase = .ended
    return true
  }

  /// Settles as succeeded, for a strand that logs it; `generation` is the one that begins now.
  @inline(__always)
  func succeed(generation: UInt64) {
    self.generation = generation
    isSettled = true
    phase = .ended
  }

  /// Sets the outcome, logs it, and moves the generation on.
  func settle(_ error: FlowError?) {
    guard !isSettled, let strand else { return }
    isSettled = true
    let loop = strand.loop
    generation = loop.nextGeneration()
    let time = loop.now()
    loop.stamp = time
    // Whatever a body makes of being asked to stop, the op ends with what stopped it.
    outcome =
      (strand.cancellation ?? error ?? strand.outputError(of: op))?.attributed(to: displayName)
    let log = strand.log
    if log.secrets != nil { outcome = outcome.map { log.redacted($0) } }
    log.append(
      .finish, time: time, scope: scope, position: position, attempt: attempt,
      first: outcome.map { log.payload($0.logLine) } ?? .none, second: .integer(time &- began))
    if let outcome, strand.frames.isEmpty { strand.group?.memberFailed(outcome) }
  }

  /// After the end, when nothing but its strand should hold the context.
  @inline(__always)
  func close() {
    phase = .idle
    if state != nil { state = nil }
  }

  /// Lets a context go that somebody else holds: it keeps what it was about.
  func abandon() {
    keptOp = current
    keptRun = strand?.run
    strand = nil
  }
}

// MARK: - Typed access for Swift

extension OpContext {
  /// The value under `name` as a Swift type; fails the op and throws when there is none.
  public func value<Wanted: ValueConvertible>(
    _ name: ByteString, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let error: FlowError
    if let value = bucket[name] {
      if let result = Wanted(flowValue: value) { return result }
      error = .mismatchedInput(
        name, bucket.shown(value, of: bucket.keys.intern(name)), wanted: Wanted.flowTypeName)
    } else {
      error = .missingInput(name)
    }
    fail(error)
    throw outcome ?? error
  }

  public func set(_ name: ByteString, _ value: some ValueConvertible) {
    set(bucket.keys.intern(name), value.flowValue)
  }

  public func set(_ name: ByteString, _ value: Value) {
    set(bucket.keys.intern(name), value)
  }
}
