public import FlowEngine
@_spi(Scripting) public import LuaVM

/// A script host on a thread of its own, for programs that use it from async code and several threads.
///
/// ```swift
/// let scripts = try await ScriptThread(name: "scripts") { host in
///   host.register(ScaleOp().makeOp())
/// }
/// try await scripts.perform { host in
///   _ = try host.vm.call(try host.vm.load("print 'hello'", name: "hello"))
/// }
/// await scripts.shutdown()
/// ```
///
/// As with a `LoopThread`, releasing the last reference shuts it down.
public final class ScriptThread: Sendable {
  /// The thread: for actors that run on it (`FlowActor`), and work at its end.
  public let thread: LoopThread
  /// Cancels what the host runs, from any thread.
  package let canceller: ScriptCanceller
  private let place = Place()

  /// The host, which only the thread touches.
  private final class Place: @unchecked Sendable {
    var host: ScriptHost?
  }

  /// Starts the thread and makes the host there.
  ///
  /// - Parameters:
  ///   - name: The name of the thread.
  ///   - permissions: The reach of scripts outside of their state: `.restricted` for scripts of others, or a list.
  ///   - memoryLimit: The bytes that the state may use; nil for no limit. See `LuaConfiguration`.
  ///   - instructionLimit: The instructions that the state may execute; nil for no limit.
  ///   - output: The destination of what scripts and their workers print.
  ///   - canceller: The canceller of the host; nil for a new one. It must not belong to another host. After a
  ///     cancellation that has come already, nothing is prepared and its error is thrown.
  ///   - virtualClock: Whether the loop has a `VirtualClock`, so that sleeps take no time: for tests.
  ///   - file: The file of the call, for a canceller that belongs to another host.
  ///   - line: The line of the call.
  ///   - setUp: Prepares the host, on its thread: registers ops, sets globals.
  /// - Throws: A `SystemError` if the system gives no thread, a `LuaError` or `FlowError` if no host can be
  ///   made, and any error of `setUp`.
  public init(
    name: String = "script", permissions: LuaPermissions = .trusted, memoryLimit: Int? = nil,
    instructionLimit: Int? = nil, output: LuaOutput = .standardOutput,
    canceller: ScriptCanceller? = nil, virtualClock: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    setUp: @escaping @Sendable (ScriptHost) throws -> Void = { _ in }
  ) async throws {
    let canceller = canceller ?? ScriptCanceller()
    let number = canceller.begin(file: file, line: line)
    let place = place
    let configuration = LuaConfiguration(
      permissions: permissions, memoryLimit: memoryLimit, instructionLimit: instructionLimit,
      output: output)
    let thread: LoopThread
    do {
      thread =
        virtualClock
        ? try LoopThread(name: name, clock: VirtualClock()) : try LoopThread(name: name)
      try await thread.perform { loop in
        let host = try ScriptHost(vm: LuaVM(configuration: configuration), loop: loop)
        host.attach(canceller)
        do {
          if let error = canceller.take() { throw error }
          try setUp(host)
        } catch {
          host.close()
          throw error
        }
        place.host = host
      }
    } catch {
      canceller.end()
      throw error
    }
    self.thread = thread
    self.canceller = canceller
    thread.atEnd { _ in
      place.host?.close()
      place.host = nil
      canceller.end()
    }
    thread.core.add(canceller: { [reason = "the thread '\(name)' is shut down"] in
      canceller.cancel(reason: reason, host: number)
    })
  }

  /// Runs code on the thread with the host, and returns its result; for any Swift task.
  ///
  /// Cancelling the calling task cancels the code. A script that is busy lets it run then, so that it can stop the script,
  /// as `value(cancelsTask: true)` of a run does; a busy main chunk and cleanups don't, which `cancel` stops.
  ///
  /// ```swift
  /// let scripts = try await ScriptThread(name: "scripts")
  /// let answer = try await scripts.perform { host in
  ///   try host.vm.call(host.vm.load("return 42", name: "answer"), as: Int.self)
  /// }
  /// await scripts.shutdown()
  /// ```
  ///
  /// - Parameter operation: The code; it always runs on the thread, whatever it awaits in between.
  /// - Returns: Its result.
  /// - Throws: As `LoopThread.perform`.
  public func perform<Success: Sendable>(
    _ operation: nonisolated(nonsending) @escaping @Sendable (ScriptHost) async throws -> Success
  ) async throws -> Success {
    let (place, canceller) = (place, canceller)
    return try await thread.perform { (loop: FlowEventLoop) async throws -> Success in
      guard let host = place.host else { throw CancellationError() }
      let watch = loop.watchCaller { canceller.notice(turns: true) }
      defer { watch?.end() }
      return try await operation(host)
    }
  }

  /// The host, on the thread: nil after its end.
  var currentHost: ScriptHost? { place.host }

  /// Cancels everything that the host runs, also busy code; see `ScriptCanceller.cancel`.
  public func cancel(reason: (any FlowText)? = nil) { canceller.cancel(reason: reason) }

  /// Shuts the thread down, and waits for its end; see `LoopThread.shutdown`. Scripts that are busy are cancelled
  /// after the grace, too. The host is closed at the end.
  public func shutdown(grace: Duration = LoopThread.defaultGrace) async {
    await thread.shutdown(grace: grace)
  }

  /// As `shutdown`, but blocks the calling thread: for programs and tests without async code.
  @available(*, noasync, message: "use shutdown()")
  public func shutdownAndWait(grace: Duration = LoopThread.defaultGrace) {
    thread.shutdownAndWait(grace: grace)
  }
}

extension LoopService {
  /// Makes a service of scripts; `run()` starts it.
  ///
  /// ```swift
  /// let scripts = try await ScriptThread(name: "scripts")
  /// let service = LoopService(on: scripts, grace: .seconds(10)) { host in
  ///   let chunk = try host.vm.load("require('flow').sleep(60)", name: "script")
  ///   while !LoopService.isShuttingDown { _ = try host.vm.call(chunk) }
  /// }
  /// try await service.run()
  /// ```
  ///
  /// After the grace a shutdown also stops scripts that are busy; see `ScriptCanceller.cancel`. Cancelling the
  /// task of `run()` stops them at once. A main chunk can catch the error of its stop, ops and tasks can't.
  ///
  /// - Parameters:
  ///   - scripts: The thread of the host. The service keeps it; its owner shuts it down after the service.
  ///   - reason: The reason that runs and scripts show which a shutdown stops.
  ///   - grace: How long the operation, scripts and runs may continue after a shutdown has begun, before they
  ///     are cancelled; see `isShuttingDown`.
  ///   - operation: The work, on the thread. A shutdown cancels it after the grace.
  public convenience init(
    on scripts: ScriptThread, reason: some FlowText = "shutting down" as ByteString,
    grace: Duration = .zero,
    _ operation: nonisolated(nonsending) @escaping @Sendable (ScriptHost) async throws -> Void
  ) {
    self.init(
      on: scripts.thread.mailbox, of: scripts.thread, reason: reason.byteString, grace: grace,
      interrupt: { scripts.canceller.cancel(reason: $0) }
    ) { _ in
      guard let host = scripts.currentHost else { throw CancellationError() }
      do {
        try await operation(host)
      } catch {
        // An error that came out of Lua may be the stop's.
        let stop = host.flowError(from: error)
        throw stop.kind == .cancelled ? stop : error
      }
    }
  }
}
