import FlowEngine

/// All jobs of the server: so many run at a time, further ones wait for their turn, and more are refused.
actor Jobs {
  private let shop: Shop
  private let limits: JobLimits
  private let mostRunning: Int
  private let mostWaiting: Int
  private let log: @Sendable (String) -> Void

  /// The jobs that run or wait, by their ids.
  private var cancellations: [String: JobCancellation] = [:]
  private var running = 0
  /// Those that wait, the next one first. True begins a job, false ends it.
  private var turns: [(id: String, begin: CheckedContinuation<Bool, Never>)] = []
  /// Set while the server shuts down.
  private var reasonOfShutdown: String?
  /// Waits of `shutdown` until no job is left.
  private var ends: [CheckedContinuation<Void, Never>] = []

  init(
    _ shop: Shop = Shop(), limits: JobLimits = JobLimits(), mostRunning: Int = 16,
    mostWaiting: Int = 1000, log: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.shop = shop
    self.limits = limits
    self.mostRunning = mostRunning
    self.mostWaiting = mostWaiting
    self.log = log
  }

  /// How many run or wait.
  var count: Int { cancellations.count }

  /// Runs a job, when it is its turn, and returns its outcome.
  func run(
    _ job: Job, report: @escaping @Sendable (JobEvent) -> Void = { _ in }
  ) async -> JobOutcome {
    if let reasonOfShutdown { return .refused(reasonOfShutdown) }
    if cancellations[job.id] != nil { return .refused("there is a job '\(job.id)' already") }
    if running == mostRunning, turns.count >= mostWaiting { return .refused("too many jobs") }
    let cancellation = JobCancellation()
    cancellations[job.id] = cancellation
    defer { forget(job) }
    guard await isTurn(of: job) else {
      return .failed(.cancelled(reason: cancellation.reason.map { ByteString($0) }))
    }
    defer { endTurn() }
    return await job.run(
      in: shop, limits: limits, cancellation: cancellation, report: report, log: log)
  }

  /// Cancels a job, whether it runs, is busy or waits for its turn.
  ///
  /// - Returns: Whether there is such a job.
  @discardableResult
  func cancel(_ id: String, reason: String) -> Bool {
    guard let cancellation = cancellations[id] else { return false }
    cancellation.cancel(reason: reason)
    if let place = turns.firstIndex(where: { $0.id == id }) {
      turns.remove(at: place).begin.resume(returning: false)
    }
    return true
  }

  /// Cancels all jobs whose ids begin so.
  func cancelAll(of prefix: String, reason: String) {
    for id in cancellations.keys where id.hasPrefix(prefix) { cancel(id, reason: reason) }
  }

  /// Refuses new jobs, lets those that run continue for `grace`, cancels them then, and returns when none is left.
  /// Jobs that wait for their turn are cancelled at once.
  func shutdown(grace: Duration) async {
    let reason = "the server is shutting down"
    reasonOfShutdown = reason
    for turn in turns { cancel(turn.id, reason: reason) }
    let limit = Task {
      try await Task.sleep(for: grace)
      for id in cancellations.keys { cancel(id, reason: reason) }
    }
    if !cancellations.isEmpty { await withCheckedContinuation { ends.append($0) } }
    limit.cancel()
  }

  private func isTurn(of job: Job) async -> Bool {
    if running < mostRunning {
      running += 1
      return true
    }
    return await withCheckedContinuation { turns.append((job.id, $0)) }
  }

  /// Passes the turn on.
  private func endTurn() {
    if turns.isEmpty { running -= 1 } else { turns.removeFirst().begin.resume(returning: true) }
  }

  private func forget(_ job: Job) {
    cancellations[job.id] = nil
    if cancellations.isEmpty {
      for end in ends { end.resume() }
      ends = []
    }
  }
}
