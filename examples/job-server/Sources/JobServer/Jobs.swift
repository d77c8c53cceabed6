import Dispatch
import FlowEngine
import FlowScripting

/// All jobs of the server: so many run at a time, further ones wait for their turn, and more are refused.
///
/// Any thread may call it. A call has taken effect when it returns, so that a job that was started can be cancelled.
final class Jobs: Sendable {
  private let shop: Shop
  private let limits: JobLimits
  private let mostRunning: Int
  private let mostWaiting: Int
  private let log: @Sendable (String) -> Void
  private let state = Locked(State())
  /// The jobs whose `end` hasn't returned.
  private let open = DispatchGroup()

  /// A job that runs or waits.
  private struct Entry: Sendable {
    let job: Job
    let canceller = ScriptCanceller()
    let report: @Sendable (JobEvent) -> Void
    let end: @Sendable (JobOutcome) -> Void
  }

  private struct State {
    /// All jobs by their ids.
    var entries: [String: Entry] = [:]
    var running = 0
    /// The ids of those that wait, the next one first.
    var waiting: [String] = []
    /// Set while the server shuts down.
    var reasonOfShutdown: String?
  }

  init(
    _ shop: Shop = Shop(), limits: JobLimits = JobLimits(), mostRunning: Int = 16,
    mostWaiting: Int = 100, log: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.shop = shop
    self.limits = limits
    self.mostRunning = mostRunning
    self.mostWaiting = mostWaiting
    self.log = log
  }

  /// How many run or wait.
  var count: Int { state.withLock { $0.entries.count } }

  /// Starts a job, which runs when it is its turn.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - report: Gets its events, on its thread.
  ///   - end: Gets its outcome, on any thread. Neither may wait for anything.
  func start(
    _ job: Job, report: @escaping @Sendable (JobEvent) -> Void,
    end: @escaping @Sendable (JobOutcome) -> Void
  ) {
    let entry = Entry(job: job, report: report, end: end)
    switch state.withLock({ admit(entry, to: &$0) }) {
    case .begins: run(entry)
    case .waits: break
    case .refused(let reason): end(.refused(reason))
    }
  }

  /// Runs a job, when it is its turn, and returns its outcome.
  func run(
    _ job: Job, report: @escaping @Sendable (JobEvent) -> Void = { _ in }
  ) async -> JobOutcome {
    await withCheckedContinuation { continuation in
      start(job, report: report) { continuation.resume(returning: $0) }
    }
  }

  /// Cancels a job, whether it runs, is busy or waits for its turn.
  ///
  /// - Returns: Whether there is such a job.
  @discardableResult
  func cancel(_ id: String, reason: String) -> Bool {
    let (entry, hasWaited) = state.withLock { state in
      guard let place = state.waiting.firstIndex(of: id) else { return (state.entries[id], false) }
      state.waiting.remove(at: place)
      return (state.entries.removeValue(forKey: id), true)
    }
    guard let entry else { return false }
    if hasWaited {
      finish(entry, .failed(FlowError(.cancelled, "cancelled: \(reason)")))
    } else {
      entry.canceller.cancel(reason: reason)
    }
    return true
  }

  /// Cancels all jobs whose ids begin so.
  func cancelAll(of prefix: String, reason: String) {
    let ids = state.withLock { $0.entries.keys.filter { $0.hasPrefix(prefix) } }
    for id in ids { cancel(id, reason: reason) }
  }

  /// Refuses new jobs, lets those that run continue for `grace`, cancels them then, and returns when none is left.
  /// Jobs that wait for their turn are cancelled at once.
  func shutdown(grace: Duration) async {
    let reason = "the server is shutting down"
    let waiting = state.withLock { state in
      state.reasonOfShutdown = reason
      return state.waiting
    }
    for id in waiting { cancel(id, reason: reason) }
    let limit = Task {
      try await Task.sleep(for: grace)
      cancelAll(of: "", reason: reason)
    }
    await withCheckedContinuation { end in open.notify(queue: .global()) { end.resume() } }
    limit.cancel()
  }

  private enum Admission {
    case begins, waits
    case refused(String)
  }

  /// Registers a job.
  private func admit(_ entry: Entry, to state: inout State) -> Admission {
    let id = entry.job.id
    if let reason = state.reasonOfShutdown { return .refused(reason) }
    if state.entries[id] != nil { return .refused("there is a job '\(id)' already") }
    let begins = state.running < mostRunning
    if !begins, state.waiting.count >= mostWaiting { return .refused("too many jobs") }
    if begins { state.running += 1 } else { state.waiting.append(id) }
    state.entries[id] = entry
    open.enter()
    return begins ? .begins : .waits
  }

  private func run(_ entry: Entry) {
    Task {
      let outcome = await entry.job.run(
        in: shop, limits: limits, canceller: entry.canceller, report: entry.report, log: log)
      let next = state.withLock { state -> Entry? in
        state.entries[entry.job.id] = nil
        // The turn is passed on.
        if let id = state.waiting.first {
          state.waiting.removeFirst()
          return state.entries[id]
        }
        state.running -= 1
        return nil
      }
      if let next { run(next) }
      finish(entry, outcome)
    }
  }

  private func finish(_ entry: Entry, _ outcome: JobOutcome) {
    entry.end(outcome)
    open.leave()
  }
}
