@_spi(Scripting) public import FlowEngine
@_spi(Scripting) public import LuaVM

extension ScriptHost {
  /// Runs a script in a state of its own on a thread of its own, and returns its results: the shortest way to
  /// run one from async code.
  ///
  /// ```swift
  /// let result = try await ScriptHost.run(
  ///   script: "local data = ...; return data.width * 2", data: ["width": 320],
  ///   permissions: .restricted, timeLimit: .seconds(1), memoryLimit: 16 << 20)
  /// let width = try result.value(as: Int.self)
  /// ```
  ///
  /// The script is executed like an op: it may wait, and what it starts and doesn't await is cancelled when
  /// it returns. It gets its data, a table, as its argument. Cancelling the calling task cancels the script,
  /// also while it is busy. At most 64 scripts run at a time, with a thread each; further calls wait for the end of one,
  /// without the scripts that a script calls by Swift code.
  ///
  /// - Parameters:
  ///   - script: The script, as a text or in a file; bytecode is refused.
  ///   - data: The fields of the table that the script gets: a dictionary, or anything `Encodable` as
  ///     `InitialData(encoding:)`. Tables are copied, secrets stay secret, and objects are passed to the script's
  ///     thread: those that the program still uses have to be `Sendable`.
  ///   - permissions: The reach of the script outside of its state: `.restricted` for scripts of others, or a list
  ///     such as `[.requests]`.
  ///   - timeLimit: The time for the script, also if it is busy; nil for no limit. Its cleanups have the time
  ///     of `FlowEventLoop.cleanupGrace` afterwards.
  ///   - memoryLimit: The bytes that the state may use, and the copies of its results and those of its data,
  ///     each; nil for no limit.
  ///   - instructionLimit: The instructions that the state may execute; nil for no limit. See `LuaConfiguration`.
  ///   - output: The destination of what the script and its workers print.
  ///   - canceller: Cancels the script from any thread, with a reason, also before this call: it then throws
  ///     at once. It must not belong to another host.
  ///   - file: The file of the call, for a canceller that belongs to another host.
  ///   - line: The line of the call.
  ///   - setUp: Prepares the host before the script is loaded, on its thread: for ops and globals.
  /// - Returns: The values that the script has returned, and its data at the end.
  /// - Throws: A `FlowError`: of kind `timeout` after the time limit, of kind `cancelled` when the calling task
  ///   was cancelled or the canceller was used, and otherwise the error of the script.
  public static func run(
    script: ScriptSource, data: sending InitialData = [:],
    permissions: LuaPermissions = .trusted, timeLimit: Duration? = nil,
    memoryLimit: Int? = nil, instructionLimit: Int? = nil, output: LuaOutput = .standardOutput,
    canceller: ScriptCanceller? = nil,
    file: StaticString = #fileID, line: UInt = #line,
    setUp: @escaping @Sendable (ScriptHost) throws -> Void = { _ in }
  ) async throws(FlowError) -> ScriptResult {
    let call = ScriptCall(
      script: script, data: try ScriptCall.Fields(data),
      timeLimit: timeLimit.map { max($0, .nanoseconds(1)) },
      configuration: LuaConfiguration(
        permissions: permissions, memoryLimit: memoryLimit, instructionLimit: instructionLimit,
        output: output),
      setUp: setUp,
      canceller: canceller ?? ScriptCanceller())
    call.canceller.begin(file: file, line: line)
    defer { call.canceller.end() }
    let isFirst = !ScriptPlaces.isWithinScript
    if isFirst { try await ScriptPlaces.shared.take() }
    defer { if isFirst { ScriptPlaces.shared.release() } }
    let thread: LoopThread
    do throws(SystemError) { thread = try LoopThread(name: "script") } catch {
      throw .from(error)
    }
    let context = ScriptPlaces.$isWithinScript.withValue(true) { TaskContext() }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        thread.post { loop in
          context.run { continuation.resume(returning: call.execute(on: loop)) }
        }
      }
    } onCancel: {
      call.canceller.cancel()
    }
    await thread.shutdown(grace: .zero)
    return try outcome.get()
  }
}

/// The places of scripts that run on threads of their own: a limited number.
private final class ScriptPlaces: Sendable {
  static let shared = ScriptPlaces()
  /// Whether Swift code of a script calls, which would wait for itself.
  @TaskLocal static var isWithinScript = false

  private struct State {
    var free = 64
    var last: UInt64 = 0
    var waiting: [(number: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
  }
  private let state = Locked(State())

  /// Takes a place, or waits for one.
  ///
  /// - Throws: An error of kind `cancelled` when the calling task is cancelled meanwhile.
  func take() async throws(FlowError) {
    let number = state.withLock {
      $0.last += 1
      return $0.last
    }
    let isTaken = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let known = state.withLock { state -> Bool? in
          if Task.isCancelled { return false }
          if state.free > 0 {
            state.free -= 1
            return true
          }
          state.waiting.append((number, continuation))
          return nil
        }
        if let known { continuation.resume(returning: known) }
      }
    } onCancel: {
      let waiting = state.withLock { state in
        state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
      }
      waiting?.continuation.resume(returning: false)
    }
    if !isTaken { throw .cancelled() }
  }

  /// Gives a place to the one that has waited for the longest time.
  func release() {
    let next = state.withLock { state in
      if state.waiting.isEmpty {
        state.free += 1
        return nil as CheckedContinuation<Bool, Never>?
      }
      return state.waiting.removeFirst().continuation
    }
    next?.resume(returning: true)
  }
}

/// One call of `ScriptHost.run`.
private struct ScriptCall: Sendable {
  let script: ScriptSource
  let data: Fields
  let timeLimit: Duration?
  let configuration: LuaConfiguration
  let setUp: @Sendable (ScriptHost) throws -> Void
  /// Taken for this call.
  let canceller: ScriptCanceller

  /// The data of a call, on their way to its thread.
  // The caller has sent them, and tables of Lua, which belong to a thread, are copied.
  struct Fields: @unchecked Sendable {
    let list: [(name: ByteString, value: FlowValue)]

    init(_ data: InitialData) throws(FlowError) {
      var list: [(name: ByteString, value: FlowValue)] = []
      for (name, value) in data.entries {
        guard let copy = value.plainCopy()?.flowValue ?? (Self.isSendable(value) ? value : nil)
        else {
          throw .usage("the data '\(name)' of a script can't be copied")
        }
        list.append((name, copy))
      }
      self.list = list
    }

    /// Whether no part of a value belongs to a Lua state.
    private static func isSendable(_ root: FlowValue) -> Bool {
      var open = [root]
      while let value = open.popLast() {
        guard case .opaque(let opaque) = value.plain else { continue }
        if let map = opaque as? MapValue {
          open += map.fields.map(\.value) + map.numbered.map(\.1)
        } else if let list = opaque as? ListValue {
          open += (0..<(list.listCount() ?? 0)).map(list.element)
        } else if opaque is ScriptValue || opaque is ScriptObject {
          return false
        }
      }
      return true
    }
  }

  /// Calls the chunk with its data, and `keep` with its results.
  private static let caller: ByteString = """
    local chunk, data, keep = ...
    return function() keep(chunk(data)) end
    """

  /// Runs the script on the thread of a loop.
  func execute(on loop: FlowEventLoop) -> Result<ScriptResult, FlowError> {
    do {
      let host = try ScriptHost(vm: LuaVM(configuration: configuration), loop: loop)
      defer { host.close() }
      host.attach(canceller)
      return Result { () throws(FlowError) in
        do {
          return try execute(on: host)
        } catch {
          throw host.flowError(unpacking: error)
        }
      }
    } catch {
      return .failure(.from(error))
    }
  }

  private func execute(on host: ScriptHost) throws -> ScriptResult {
    let vm = host.vm
    if let error = canceller.take() { throw error }
    try setUp(host)
    let chunk: LuaReference
    switch script.content {
    case .text(let text, let name): chunk = try vm.load(text, chunkName: "=" + name)
    case .file(let path): chunk = try vm.loadFile(path)
    }
    let table = try vm.makeTable(
      fields: try data.list.map { ($0.name, try host.luaValue($0.value)) })
    var results: [LuaValue] = []
    var room = vm.memoryLimit ?? .max
    let keep = try vm.makeFunction { call in
      for index in 0..<call.count {
        // One string may be returned many times.
        room -= call.withBytes(index + 1) { $0.count } ?? 0
        if room < 0 { throw LuaError(.memory, "not enough memory") }
        results.append(try call.value(index + 1))
      }
      return call.answer()
    }
    let caller = try vm.loadOwn(Self.caller, name: "=[flow]")
    let made = try vm.call(caller, [.reference(chunk), .reference(table), .reference(keep)])
    guard case .reference(let function)? = made.first else {
      throw LuaError(.runtime, "a script made no function")
    }
    if let error = canceller.take() { throw error }
    let op = Op(
      name: "script", policy: .make(nil, timeout: timeLimit), body: ScriptOpBody(host, function))
    let run = op.start(on: host.loop)
    host.runToEnd()
    run.markObserved()
    if let error = run.error { throw error }
    var (copier, dataCopier) = (PlainCopier(vm: vm), PlainCopier(vm: vm, omittingObjects: true))
    return ScriptResult(
      values: try results.enumerated().map {
        try copy($1, of: "result \($0 + 1)", host, by: &copier)
      },
      data: try copy(.reference(table), of: "data", host, by: &dataCopier))
  }

  private func copy(
    _ value: LuaValue, of part: ByteString, _ host: ScriptHost, by copier: inout PlainCopier
  ) throws -> PlainValue {
    if case .reference(let table) = value, table.kind == .table {
      if let copy = try copier.copy(value) { return copy }
    } else if let copy = FlowValue(value).plainCopy() {
      return copy
    }
    let kind = host.kindName(of: value)
    throw FlowError(
      .mismatchedOutput,
      "the script's \(part) can't be copied to Swift: \(kind == "table" ? "a value in it" : kind)")
  }
}
