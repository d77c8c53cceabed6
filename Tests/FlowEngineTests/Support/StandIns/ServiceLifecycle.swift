// A stand-in of the module `ServiceLifecycle`: the same signatures, for the adapters of the tests and of the
// documentation. The package itself isn't a dependency.
import Synchronization

/// Long-running work of a program.
public protocol Service: Sendable {
  func run() async throws
}

/// Runs services until one ends, or a graceful shutdown has ended all.
public actor ServiceGroup {
  private let services: [any Service]
  private let shutdown = GracefulShutdown()

  public init(services: [any Service]) { self.services = services }

  public func run() async throws {
    try await GracefulShutdown.$current.withValue(shutdown) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for service in services { group.addTask { try await service.run() } }
        try await group.waitForAll()
      }
    }
  }

  public func triggerGracefulShutdown() { shutdown.trigger() }
}

/// Calls the handler when a graceful shutdown begins while the operation runs.
public func withGracefulShutdownHandler<Result>(
  isolation: isolated (any Actor)? = #isolation, operation: () async throws -> Result,
  onGracefulShutdown handler: @Sendable @escaping () -> Void
) async rethrows -> Result {
  GracefulShutdown.current?.add(handler)
  return try await operation()
}

/// The handlers of a group.
private final class GracefulShutdown: Sendable {
  @TaskLocal static var current: GracefulShutdown?

  private let state = Mutex<(isTriggered: Bool, handlers: [@Sendable () -> Void])>((false, []))

  func add(_ handler: @escaping @Sendable () -> Void) {
    let isTriggered = state.withLock { state in
      if !state.isTriggered { state.handlers.append(handler) }
      return state.isTriggered
    }
    if isTriggered { handler() }
  }

  func trigger() {
    let handlers = state.withLock { state in
      state.isTriggered = true
      defer { state.handlers = [] }
      return state.handlers
    }
    for handler in handlers { handler() }
  }
}
