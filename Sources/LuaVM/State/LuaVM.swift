internal import CFlowLua
internal import CLua
internal import FlowSystem
internal import Synchronization

/// One Lua 5.4 state, safe to use from Swift.
///
/// No Lua error ever unwinds a Swift frame: functions that may raise run protected in C, and Lua
/// calls Swift functions through a C trampoline. The state belongs to the thread that made it, and
/// every entry checks that. Source: the Lua 5.4 reference manual, section 4.
///
/// ```swift
/// let vm = try LuaVM()
/// defer { vm.close() }
/// let chunk = try vm.load("return 6 * ...", name: "answer.lua")
/// print(try vm.call(chunk, 7, as: Int.self))
/// ```
public final class LuaVM {
  let state: OpaquePointer
  private let functions = FunctionList()
  private let released = ReleaseQueue()
  /// The most recent wait: kept until the scheduler takes it.
  // Unchecked exclusivity, here and below: only the owner thread uses them, and no access lasts
  // into a call. The checks would cost more than the accesses.
  @exclusivity(unchecked) private(set) var begunWait: LuaWait?
  /// The wait of the inner scheduler loop that runs or has just ended: kept until its results are
  /// taken.
  @exclusivity(unchecked) private var pumpedWait: LuaWait?
  @exclusivity(unchecked) private var isPumping = false
  var isDescribingError = false
  private(set) var failureType = LuaObjectType<LuaFailureBox>(name: "error", id: 1)

  /// The short texts that were copied last.
  private let recentTexts = RecentTexts()

  /// How many calls from Swift are being made, whose arguments and results stand on a stack.
  @exclusivity(unchecked) var openCalls = 0

  /// The classes of Swift that scripts know; see `define`.
  @usableFromInline let boundClasses = BoundClasses()

  /// The scheduler that runs the coroutines; without one, nothing can wait. Kept until the state is
  /// closed. (A weak reference would make every retain of the scheduler slow.)
  package var scheduler: (any LuaScheduler)?

  /// Called when the `terminator` has requested the end of the process while Lua code runs: between
  /// two of its instructions. It may end the process; if it returns, the code continues.
  package var onTermination: (() -> Void)?
  /// Called when a script calls `os.exit`, before that has any effect.
  package var onExit: (() -> Void)?
  /// Called on the owner thread before an interruption is raised in busy code. If it returns false,
  /// nothing is raised, and the next wait takes the request.
  package var onInterruption: (() -> Bool)?

  /// Returns the error to raise in place of one that a Swift function has thrown and that isn't a `LuaError`; nil: itself.
  package var onThrownError: ((any Error) -> any Error)?

  /// Called when another thread has used `attention` while Lua code runs: between two of its
  /// instructions.
  package var onAttention: (() -> Void)?
  /// The place, `file:line: `, where the running code was started, for messages of functions that no Lua function has called.
  package var positionOfStart: (() -> ByteString)?
  /// Called before that, for a host of scripts.
  package var onHostAttention: (() -> Void)?

  /// The value that the most recent interruption raises, if it isn't a text.
  var interruptionValue: LuaReference?
  /// The error that the outermost call with a deadline throws after it was stopped; see `stopCalls`.
  var callStopError: (any Error)?
  /// How marked objects travel; see `setSecretType`.
  var secrets: SecretCoding?
  /// The form of code that is being made; see `codeForm`.
  var forming: CodeForming?

  /// Whether the state can still be used.
  package private(set) var isOpen = true

  /// Its settings: another state with them is like this one.
  package let configuration: LuaConfiguration

  /// Makes a state. Throws a `LuaError` of code `memory` when the limit is too small for it, and of code
  /// `library` in a program that is linked with a static liblua.
  public init(configuration: LuaConfiguration = LuaConfiguration()) throws {
    self.configuration = configuration
    var plain = flowlua_configuration(
      memory_limit: configuration.memoryLimit ?? 0,
      budget: configuration.memoryBudget?.budget,
      libraries: configuration.libraryBits,
      loads_bytecode: configuration.loadsBytecode,
      refuses_finalizers: !configuration.allowsFinalizers,
      generational: configuration.generationalCollector,
      ignores_environment: configuration.ignoresEnvironment,
      exits: configuration.exits,
      failing_allocation: configuration.failingAllocation,
      withheld: configuration.withheld.rawValue)
    var callbacks = flowlua_callbacks(
      call: answerCall, direct_call: answerDirectCall, resume_wait: answerWait, pump: pumpWait,
      unwrap: unwrapSecret, wrap: wrapSecret,
      describe_object: describeObject, describe_module: describeNamedModule,
      release: releaseObject, terminate: endProcess, leave: noteExit, interrupt: noteInterruption,
      outside: countOutside, attend: answerAttention, write: writeOutput)
    var problem: UnsafePointer<CChar>?
    guard let opened = flowlua_open(&plain, &callbacks, &problem) else {
      if let problem { throw LuaError(.library, ByteString(String(cString: problem))) }
      throw LuaError(.memory, "not enough memory for a Lua state")
    }
    state = opened
    memoryLimit = configuration.memoryLimit
    instructionLimit = configuration.instructionLimit
    flowlua_set_context(state, Unmanaged.passUnretained(self).toOpaque())
    do {
      failureType = try defineObjectType(
        "error", of: LuaFailureBox.self, methods: [:],
        metamethods: { type in
          [
            "__tostring": { call in
              guard let box = call.object(1, type) else { return call.answer(.string("error")) }
              return call.answer(.string(ByteString(String(describing: box.error))))
            }
          ]
        })
      try prepareOutput()
      guard flowlua_refill_spare(state) else {
        throw LuaError(.memory, "not enough memory for a Lua state")
      }
      if instructionLimit != nil { limitInstructions() }
    } catch {
      close()
      throw error
    }
  }

  /// Prepares the functions that write, before any script has got hold of them.
  private func prepareOutput() throws {
    guard case .standardOutput = configuration.output else {
      return try check(flowlua_capture_output(state))
    }
    guard let outputGuard = configuration.outputGuard else { return }
    try check(
      flowlua_guard_output(
        state,
        flowlua_output_guard(
          hide: outputGuard.hide, wrote: outputGuard.wrote,
          includes_stdout: outputGuard.includesStdout)))
  }

  deinit {
    if isOpen {
      guard flowlua_is_owner(state) else {
        misuse("the last reference to an open Lua state was released on another thread")
      }
      close()
    }
    flowlua_free(state)
  }

  /// Closes the state: pending `__close`s of the main coroutine and all `__gc`s run, references
  /// become void. Closing twice does nothing.
  public func close(file: StaticString = #fileID, line: UInt = #line) {
    checkOwner(file: file, line: line)
    guard isOpen, !flowlua_is_closing(state) else { return }
    if flowlua_is_busy(state) || openCalls > 0 {
      misuse("a Lua state was closed by code that runs in it", file: file, line: line)
    }
    flowlua_close(state)
    isOpen = false
    flowlua_drop_leftovers(state)
    functions.removeAll()
    scheduler = nil
    onTermination = nil
    onExit = nil
    onInterruption = nil
    onAttention = nil
    positionOfStart = nil
    onHostAttention = nil
    memoryOutside = nil
    onCopiedText = nil
    onMemoryLimit = nil
    interruptionValue = nil
    callStopError = nil
    secrets = nil
    begunWait = nil
    pumpedWait = nil
  }

  // MARK: Measures

  /// Bytes that the state holds.
  public var memoryUsed: Int { isOpen ? flowlua_memory_used(state) : 0 }

  /// The most bytes that the state may hold; nil for no limit. The bytes of `memoryOutside` count, too.
  // Unchecked exclusivity, because `hasMemoryLimit` is read for each string that a script sets: see HotPath.swift.
  @exclusivity(unchecked) public var memoryLimit: Int? {
    didSet {
      checkOwner()
      flowlua_set_memory_limit(state, memoryLimit ?? 0)
      onMemoryLimit?()
    }
  }

  /// Whether `memoryLimit` is set.
  // Never inlined: the attribute is lost on the way to another module.
  package var hasMemoryLimit: Bool {
    @inline(never) get { memoryLimit != nil }
  }

  /// The number of instructions of Lua that the state may execute from now on; nil for any number. Setting it again,
  /// also to the same number, begins a new count: scripts continue although they have exceeded the limit before.
  /// See `LuaConfiguration.instructionLimit`.
  public var instructionLimit: Int? {
    didSet {
      checkOwner()
      if isOpen { limitInstructions() }
    }
  }

  private func limitInstructions() {
    flowlua_set_instruction_limit(state, instructionLimit.map { Int64(max($0, 0)) } ?? -1)
  }

  /// Counts instructions from now on, also without a limit, for `instructionsLeft`.
  package func countInstructions() {
    if instructionLimit == nil { flowlua_set_instruction_limit(state, .max) }
  }

  /// How many instructions may be executed before an error is raised, while they are counted. Setting it changes no limit.
  package var instructionsLeft: Int64 {
    get { flowlua_instructions_left(state) }
    set { flowlua_set_instructions_left(state, newValue) }
  }

  /// The bytes that others hold for the scripts of this state: exactly if they are more than `room`, else
  /// perhaps fewer. Called while the state allocates memory, so that it must not use the state.
  package var memoryOutside: ((_ room: Int) -> Int)?
  /// Called with each large text that is copied from the state; nil, the default, to call nothing.
  package var onCopiedText: ((ByteString) -> Void)?
  /// Texts of at least so many bytes are large.
  package static let largeText = 513
  /// Whether so much has grown outside of the state since its last collection that it may be for its garbage.
  private var isCollectionDue = false
  /// The time from which on a state that has work may collect for the sake of its budget again.
  var settlesFrom: Int64 = 0
  /// Called when the limit has been set.
  package var onMemoryLimit: (() -> Void)?

  /// Whether the state, with what is outside of it, is beyond its limit, also after a collection.
  package func isBeyondMemoryLimit() -> Bool {
    guard memoryLimit != nil, isOpen, flowlua_exceeds_memory(state) else { return false }
    try? collectGarbage()
    return flowlua_exceeds_memory(state)
  }

  /// Raises "not enough memory" in the running code of an op or task if what is outside of the state has made
  /// it exceed its limit.
  package func noteMemoryOutside() {
    guard isOpen else { return }
    flowlua_note_outside(state)
    if flowlua_needs_collection(state) { isCollectionDue = true }
  }

  /// Collects what may hold memory outside. The collector doesn't know of that memory, and what it frees when
  /// the state itself has no more comes too late: Swift references can't be released within an allocation.
  @inline(never)
  private func collectIfDue() {
    guard isCollectionDue else { return }
    isCollectionDue = false
    try? collectGarbage()
  }

  /// The number of values that Swift references.
  package var referenceCount: Int { isOpen ? Int(flowlua_reference_count(state)) : 0 }

  /// The number of values on the running coroutine's stack, for tests of its balance.
  package var stackDepth: Int {
    // The host's own value is at the bottom of the main coroutine's stack.
    let own: Int32 = flowlua_running(state) == flowlua_main(state) ? 1 : 0
    return Int(lua_gettop(flowlua_running(state)) - own)
  }

  /// For tests: makes the n-th allocation from now fail; 0 for none. Returns how many allocations
  /// were left before that one, 0 if it has failed.
  @discardableResult
  package func failAllocation(_ n: UInt64) -> UInt64 { flowlua_fail_allocation(state, n) }

  /// For tests: the same for memory that the C side needs for itself, on this thread.
  @discardableResult
  package static func failOwnAllocation(_ n: UInt64) -> UInt64 { flowlua_fail_own_allocation(n) }

  // MARK: Entry

  /// Every public entry begins here.
  @inline(__always)
  func enter() throws {
    guard flowlua_enter(state) == FLOWLUA_ENTERED else { try refuseEntry() }
    if released.isPending { drainReleased() }
  }

  @inline(never)
  private func refuseEntry() throws -> Never {
    checkOwner()
    throw LuaError(.closed, "the Lua state is closed")
  }

  /// Checks that a value belongs to this state.
  @inline(__always)
  func checkHome(_ reference: LuaReference) {
    if reference.vm !== self { misuse("a value of one Lua state was used with another") }
  }

  /// Whether the present thread may use the state.
  package var isOnOwnThread: Bool { flowlua_is_owner(state) }

  func checkOwner(file: StaticString = #fileID, line: UInt = #line) {
    guard isOnOwnThread else {
      misuse(
        "a Lua state was used on a thread other than the one that made it", file: file, line: line)
    }
  }

  var running: OpaquePointer { flowlua_running(state) }

  // MARK: References

  func release(reference id: Int32) {
    if !flowlua_is_owner(state) {
      released.add(id)
    } else if isOpen {
      flowlua_unreference(state, id)
    }
  }

  private func drainReleased() {
    for id in released.takeAll() { flowlua_unreference(state, id) }
  }

  /// Pops the top of a stack as a value.
  func popValue(_ lua: OpaquePointer) throws -> LuaValue {
    let kind = LuaKind(rawValue: lua_type(lua, -1)) ?? .none
    switch kind {
    case .none, .nil, .boolean, .number, .string:
      defer { flowlua_pop(lua, 1) }
      return try value(in: lua, at: -1)
    default:
      return .reference(try popReference(lua, kind))
    }
  }

  func popReference(_ lua: OpaquePointer, _ kind: LuaKind) throws -> LuaReference {
    let id = flowlua_reference(state, lua)
    guard id > 0 else { throw LuaError(.memory, "not enough memory") }
    return LuaReference(vm: self, id: id, kind: kind)
  }

  /// The value at an index of a stack.
  func value(in lua: OpaquePointer, at index: Int32) throws -> LuaValue {
    let kind = LuaKind(rawValue: lua_type(lua, index)) ?? .none
    switch kind {
    case .none, .nil: return .nil
    case .boolean: return .boolean(lua_toboolean(lua, index) != 0)
    case .number:
      return number(in: lua, at: index)
    case .string:
      var count = 0
      let bytes = flowlua_bytes(lua, index, &count)
      return .string(copiedText(UnsafeRawBufferPointer(start: bytes, count: count)))
    default:
      try check(flowlua_make_room(state, lua, 2))
      lua_pushvalue(lua, index)
      return .reference(try popReference(lua, kind))
    }
  }

  /// A copy of a text of the state.
  @inline(__always)
  func copiedText(_ bytes: UnsafeRawBufferPointer) -> ByteString {
    if bytes.count <= RecentTexts.longest { return recentTexts.copy(of: bytes) }
    let text = ByteString(bytes)
    if bytes.count >= Self.largeText { noteCopied(text) }
    return text
  }

  @inline(never)
  private func noteCopied(_ text: ByteString) { onCopiedText?(text) }

  /// The number at an index of a stack.
  @inline(__always)
  func number(in lua: OpaquePointer, at index: Int32) -> LuaValue {
    lua_isinteger(lua, index) != 0
      ? .integer(lua_tointegerx(lua, index, nil)) : .number(lua_tonumberx(lua, index, nil))
  }

  // MARK: Functions

  /// Assigns a number to a function.
  func add(function: @escaping LuaFunction) -> Int32 { functions.add(function) }

  fileprivate func dispatch(_ raw: UnsafeMutablePointer<flowlua_call>) -> Int32 {
    let call = LuaCall(raw: raw)
    if released.isPending { drainReleased() }
    if isCollectionDue { collectIfDue() }
    guard let function = functions[raw.pointee.function] else {
      return call.raise(LuaError(.closed, "the Lua state is closed"))
    }
    do {
      return try function(call).outcome
    } catch {
      return call.raise(error)
    }
  }

  /// Assigns a number to a function and its fast way for direct calls.
  func add(method: LuaMethod) -> Int32 { functions.add(method) }

  @inline(__always)
  fileprivate func dispatch(_ raw: UnsafeMutablePointer<flowlua_direct_call>) -> Int32 {
    guard let method = functions[direct: raw.pointee.function] else { return -1 }
    return method._withUnsafeGuaranteedRef { $0.answer(LuaDirectCall(raw: raw)) }.results
  }

  // MARK: Waiting

  func hold(_ wait: LuaWait) { begunWait = wait }

  /// The wait of the coroutine that has just parked.
  func takeParkedWait() -> LuaWait? {
    guard let begun = begunWait.take(),
      flowlua_parked_wait(state) == Unmanaged.passUnretained(begun).toOpaque()
    else { return nil }
    return begun
  }

  /// Ends the wait of a coroutine that was stopped when it parked, so that nothing waits for it.
  func giveUpBegunWait() {
    guard let wait = begunWait.take() else { return }
    if wait.isReady { wait.discard() } else { wait.abandon() }
  }

  fileprivate func pump(_ pointer: UnsafeMutableRawPointer) {
    pump(Unmanaged<LuaWait>.fromOpaque(pointer).takeUnretainedValue())
  }

  /// Makes a wait ready in place, if there isn't one of these already.
  func pump(_ wait: LuaWait) {
    begunWait = nil
    if isPumping {
      refusedWait = wait
      if !wait.isReady {
        wait.fail(LuaError(.runtime, "attempt to await across a C-call boundary"))
      }
      return
    }
    pumpedWait = wait
    guard !wait.isReady else { return }
    if flowlua_in_finalizer(running) {
      wait.fail(LuaError(.runtime, "attempt to await in a finalizer"))
      return
    }
    guard let scheduler else {
      wait.fail(LuaError(.runtime, "attempt to await in a state without a scheduler"))
      return
    }
    isPumping = true
    scheduler.pump(wait)
    isPumping = false
  }

  /// A refused wait: kept until its error is raised, which is at once.
  @exclusivity(unchecked) private var refusedWait: LuaWait?

  fileprivate func resumeWait(_ raw: UnsafeMutablePointer<flowlua_call>) -> Int32 {
    let call = LuaCall(raw: raw)
    guard let pointer = raw.pointee.wait else {
      return call.raise(LuaError(.runtime, "a wait without its subject"))
    }
    let wait = Unmanaged<LuaWait>.fromOpaque(pointer).takeUnretainedValue()
    defer {
      if refusedWait === wait { refusedWait = nil }
      if pumpedWait === wait && !isPumping { pumpedWait = nil }
    }
    if let problem = wait.problem { return call.raise(problem) }
    do {
      return try wait.finish(call).outcome
    } catch {
      return call.raise(error)
    }
  }
}

/// The functions that Lua can call, by number. They live as long as the state.
// A buffer instead of an array: every call from Lua reads it, and the owner thread needs neither
// exclusivity checks nor the array's reference counting.
private final class FunctionList {
  private var base = UnsafeMutablePointer<LuaMethod>.allocate(capacity: 64)
  private var capacity = 64
  private var count: Int32 = 0

  deinit {
    removeAll()
    base.deallocate()
  }

  func add(_ function: @escaping LuaFunction) -> Int32 { add(LuaMethod(function)) }

  func add(_ method: LuaMethod) -> Int32 {
    if Int(count) == capacity {
      let grown = UnsafeMutablePointer<LuaMethod>.allocate(capacity: capacity * 2)
      grown.moveInitialize(from: base, count: capacity)
      base.deallocate()
      base = grown
      capacity *= 2
    }
    (base + Int(count)).initialize(to: method)
    count += 1
    return count - 1
  }

  subscript(_ number: Int32) -> LuaFunction? {
    number >= 0 && number < count ? base[Int(number)].function : nil
  }

  /// Unretained. Safe: the caller that runs the state keeps it, and with it the list, until the
  /// call ends.
  subscript(direct number: Int32) -> Unmanaged<LuaDirectMethod>? {
    number >= 0 && number < count ? base[Int(number)].direct.map { .passUnretained($0) } : nil
  }

  func removeAll() {
    // Releasing a closure may run code that adds or calls functions, so the list is emptied first.
    let present = Int(count)
    count = 0
    base.deinitialize(count: present)
  }
}

/// Releases from other threads.
private final class ReleaseQueue: Sendable {
  private let ids = Locked<[Int32]>([])
  /// Lets the owner check without taking the lock.
  private let pending = Atomic<Bool>(false)

  var isPending: Bool { pending.load(ordering: .relaxed) }

  func add(_ id: Int32) {
    ids.withLock { $0.append(id) }
    pending.store(true, ordering: .relaxed)
  }

  func takeAll() -> [Int32] {
    pending.store(false, ordering: .relaxed)
    return ids.withLock { ids in
      defer { ids = [] }
      return ids
    }
  }
}

// MARK: - Called by C

private func vm(of state: OpaquePointer) -> LuaVM? {
  flowlua_context(state).map { Unmanaged<LuaVM>.fromOpaque($0).takeUnretainedValue() }
}

// The state is alive while it calls: its caller keeps it.
private func answerCall(_ raw: UnsafeMutablePointer<flowlua_call>) -> Int32 {
  Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef { $0.dispatch(raw) }
}

private func answerDirectCall(_ raw: UnsafeMutablePointer<flowlua_direct_call>) -> Int32 {
  Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef { $0.dispatch(raw) }
}

private func answerWait(_ raw: UnsafeMutablePointer<flowlua_call>) -> Int32 {
  Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef { $0.resumeWait(raw) }
}

private func pumpWait(_ state: OpaquePointer, _ wait: UnsafeMutableRawPointer) {
  vm(of: state)?.pump(wait)
}

private func unwrapSecret(
  _ state: OpaquePointer, _ object: UnsafeMutableRawPointer,
  _ value: UnsafeMutablePointer<flowlua_value>
) -> Bool {
  vm(of: state)?.takeOut(of: object, into: &value.pointee) ?? false
}

private func wrapSecret(
  _ state: OpaquePointer, _ value: UnsafeMutablePointer<flowlua_value>
) -> Bool {
  vm(of: state)?.mark(&value.pointee) ?? false
}

private func describeObject(
  _ state: OpaquePointer, _ object: UnsafeMutableRawPointer,
  _ value: UnsafeMutablePointer<flowlua_value>
) -> Int32 {
  vm(of: state)?.describe(object, into: &value.pointee) ?? 0
}

private func describeNamedModule(
  _ state: OpaquePointer, _ name: UnsafePointer<CChar>, _ count: Int,
  _ digest: UnsafeMutablePointer<UInt8>?
) -> Int32 {
  vm(of: state)?.describeModule(UnsafeRawBufferPointer(start: name, count: count), digest)
    ?? Int32(FLOWLUA_MODULE_NAMED)
}

private func releaseObject(_ pointer: UnsafeMutableRawPointer) {
  Unmanaged<AnyObject>.fromOpaque(pointer).release()
}

private func noteInterruption(_ state: OpaquePointer) -> Bool {
  vm(of: state)?.onInterruption?() ?? true
}

private func endProcess(_ state: OpaquePointer) {
  vm(of: state)?.onTermination?()
}

private func noteExit(_ state: OpaquePointer) {
  vm(of: state)?.onExit?()
}

private func countOutside(_ state: OpaquePointer, _ room: Int) -> Int {
  vm(of: state)?.memoryOutside?(room) ?? 0
}

private func answerAttention(_ state: OpaquePointer) {
  guard let vm = vm(of: state) else { return }
  vm.onHostAttention?()
  vm.onAttention?()
}

private func writeOutput(
  _ state: OpaquePointer, _ bytes: UnsafePointer<CChar>, _ count: Int
) {
  guard case .handler(let handler)? = vm(of: state)?.configuration.output else { return }
  handler(ByteString(UnsafeRawBufferPointer(start: bytes, count: count).bindMemory(to: UInt8.self)))
}
