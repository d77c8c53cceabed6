import FlowEngine
import Testing

/// The adapter that the documentation shows.
private struct FlowService: Service {
  let service: LoopService

  func run() async throws {
    try await withGracefulShutdownHandler {
      try await service.run()
    } onGracefulShutdown: {
      service.shutdown()
    }
  }
}

@Suite("Services of a loop")
struct LoopServiceTests {
  private final class Notes: Sendable {
    private let lines = Locked<[String]>([])

    func add(_ line: String) { lines.withLock { $0.append(line) } }

    var all: [String] { lines.withLock { $0 } }
  }

  /// An op that says that it has started, waits until it is stopped, and notes its cleanup.
  private static func waitingOp(_ hasStarted: Flag, _ notes: Notes) -> Op {
    Op("WaitOp") { context in
      context.defer { context in
        notes.add("cleanup: \(context.endingError?.message ?? "none")")
      }
      hasStarted.raise()
      try await context.sleep(for: .seconds(3600))
    }
  }

  @Test(
    "A graceful shutdown stops runs with the reason, waits for their cleanups, and throws nothing")
  func aGracefulShutdownEndsTheService() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let hasStarted = Flag()
    let service = LoopService(on: thread) { loop in
      _ = try await Self.waitingOp(hasStarted, notes).start(on: loop).value
    }
    let group = ServiceGroup(services: [FlowService(service: service)])
    let task = Task { try await group.run() }
    await hasStarted.wait()
    await group.triggerGracefulShutdown()
    try await task.value
    #expect(notes.all == ["cleanup: cancelled: shutting down"])
  }

  @Test("Cancelling the task does the same, and throws a CancellationError")
  func cancellationEndsTheService() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let hasStarted = Flag()
    let service = LoopService(on: thread, reason: "restarting") { loop in
      // Nothing waits for it: the shutdown does.
      _ = Self.waitingOp(hasStarted, notes).start(on: loop)
      _ = try await SleepOp(.seconds(3600)).start(on: loop).value
    }
    let task = Task { try await service.run() }
    await hasStarted.wait()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(notes.all == ["cleanup: cancelled: restarting"])
  }

  @Test("It ends with its operation, with the error of that")
  func itEndsWithItsOperation() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    try await LoopService(on: thread) { _ in notes.add("done") }.run()
    #expect(notes.all == ["done"])
    let failing = LoopService(on: thread) { loop in
      _ = try await Op("FailOp") { _ in throw FlowError(.error, "no") }.start(on: loop).value
    }
    let error = await #expect(throws: FlowError.self) { try await failing.run() }
    #expect(error?.message == "no")
  }

  @Test("A service that was shut down before it runs never starts")
  func aServiceThatWasShutDownNeverStarts() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let service = LoopService(on: thread) { _ in notes.add("started") }
    service.shutdown()
    try await service.run()
    #expect(notes.all == [])
  }

  @Test("An error that isn't about the stop is thrown after a shutdown, too")
  func errorsOfAShutdownAreThrown() async throws {
    let thread = try LoopThread()
    let hasStarted = Flag()
    let service = LoopService(on: thread) { loop in
      hasStarted.raise()
      do {
        _ = try await SleepOp(.seconds(3600)).start(on: loop).value
      } catch {
        throw FlowError(.error, "can't save")
      }
    }
    let task = Task { try await service.run() }
    await hasStarted.wait()
    service.shutdown()
    let error = await #expect(throws: FlowError.self) { try await task.value }
    #expect(error?.message == "can't save")
  }

  @Test("A loop that is shut down ends the service")
  func aLoopThatIsShutDownEndsTheService() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    await thread.shutdown()
    let service = LoopService(on: mailbox) { loop in
      _ = try await SleepOp(.seconds(3600)).start(on: loop).value
    }
    let task = Task { try await service.run() }
    service.shutdown()
    _ = await task.result
  }

  // MARK: Grace

  /// An op that waits until the flag is raised, and notes its end.
  private static func gatedOp(_ hasStarted: Flag, until gate: Flag, _ notes: Notes) -> Op {
    Op("GatedOp") { (context) async throws in
      context.defer { context in notes.add("ended: \(context.endingError?.message ?? "well")") }
      hasStarted.raise()
      await gate.wait()
    }
  }

  @Test("Within the grace runs end by themselves, also those that the operation has left")
  func withinTheGraceRunsEnd() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let (hasStarted, gate, hasRestStarted, restGate) = (Flag(), Flag(), Flag(), Flag())
    let service = LoopService(on: thread, grace: .seconds(3600)) { loop in
      #expect(!LoopService.isShuttingDown)
      _ = Self.gatedOp(hasRestStarted, until: restGate, notes).start(on: loop)
      while !LoopService.isShuttingDown {
        _ = try await Self.gatedOp(hasStarted, until: gate, notes).start(on: loop).value
      }
      notes.add("operation: \(Task.isCancelled)")
      restGate.raise()
    }
    let group = ServiceGroup(services: [FlowService(service: service)])
    let task = Task { try await group.run() }
    await hasStarted.wait()
    await hasRestStarted.wait()
    await group.triggerGracefulShutdown()
    gate.raise()
    try await task.value
    #expect(notes.all == ["ended: well", "operation: false", "ended: well"])
    #expect(!LoopService.isShuttingDown)
  }

  @Test("After the grace runs are cancelled, and cleaned up")
  func afterTheGraceRunsAreCancelled() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let hasStarted = Flag()
    let service = LoopService(on: thread, grace: .milliseconds(20)) { loop in
      _ = try await Self.waitingOp(hasStarted, notes).start(on: loop).value
    }
    let task = Task { try await service.run() }
    await hasStarted.wait()
    service.shutdown()
    service.shutdown()
    try await task.value
    #expect(notes.all == ["cleanup: cancelled: shutting down"])
  }

  @Test("After the grace runs are cancelled that the operation has left, too")
  func afterTheGraceTheRestIsCancelled() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let hasStarted = Flag()
    let service = LoopService(on: thread, grace: .milliseconds(20)) { loop in
      _ = Self.waitingOp(hasStarted, notes).start(on: loop)
      while !LoopService.isShuttingDown { try await Task.sleep(for: .milliseconds(1)) }
    }
    let task = Task { try await service.run() }
    await hasStarted.wait()
    service.shutdown()
    try await task.value
    #expect(notes.all == ["cleanup: cancelled: shutting down"])
  }

  @Test("Cancelling the task ends the grace")
  func cancellationEndsTheGrace() async throws {
    let thread = try LoopThread()
    let notes = Notes()
    let hasStarted = Flag()
    let service = LoopService(on: thread, grace: .seconds(3600)) { loop in
      _ = try await Self.waitingOp(hasStarted, notes).start(on: loop).value
    }
    let task = Task { try await service.run() }
    await hasStarted.wait()
    service.shutdown()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(notes.all == ["cleanup: cancelled: shutting down"])
  }
}
