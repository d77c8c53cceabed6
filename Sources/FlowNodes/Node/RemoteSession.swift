internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// A node's part for one script elsewhere: workers of its own, with its modules and code. Scripts share nothing.
final class RemoteSession {
  let script: ByteString
  let pool: WorkerPool
  let settings: RemoteJob.Settings
  /// The functions that have arrived, by the names of their objects.
  private let codes: OncePerKey<ByteString, WorkerCode>
  /// When the script was last known to be there, and when it last had a job here: on the system's clock.
  var lastHeard = LuaVM.monotonicTime
  var lastUsed = LuaVM.monotonicTime
  /// Whether the script has said that it ends.
  var isOver = false
  /// Until when it is asked which jobs are left, because it has a new connection: see `RemoteQueue.doubt`.
  var doubtUntil: Int64 = 0
  /// Whether it is being asked.
  var isAsking = false

  private let queue: RemoteQueue
  private typealias Outgoing = (
    bytes: [UInt8], isKept: Bool, then: (Result<Void, FlowError>) -> Void
  )
  /// The reports that are sent at the end of the turn.
  private var reports: [Outgoing] = []
  /// How many bytes these have.
  private var size = 0
  /// How many bytes of reports are passed to the script now.
  private var passing = 0
  /// Until when the script gets reports by the stream only, because it had no time for others: on the system's clock.
  private var busyUntil: Int64 = 0

  init(
    _ script: ByteString, _ pool: WorkerPool, _ settings: RemoteJob.Settings, _ queue: RemoteQueue
  ) {
    self.script = script
    self.pool = pool
    self.settings = settings
    self.queue = queue
    codes = OncePerKey(queue.connection.loop)
  }

  /// Reports in one message have so many bytes at most, or are one.
  private static let mostBytes = 131_072
  /// So many bytes of reports are passed to a script at a time: the server drops a connection that takes them too slowly.
  private static let mostPassing = 1_048_576
  /// For how many nanoseconds a script that hasn't replied counts as busy.
  private static let longestBusy: Int64 = 1_000_000_000

  /// Sends a report to the script, in a message with others; `then` is called when the script has it, or the server has
  /// stored it.
  ///
  /// - Parameters:
  ///   - bytes: The report.
  ///   - isKept: Whether it is about an op of a kept run: the server stores it, because another process of the script may
  ///     read it.
  ///   - then: Gets the result.
  func report(
    _ bytes: [UInt8], isKept: Bool = false, then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    if size + bytes.count > Self.mostBytes { sendReports() }
    size += bytes.count
    reports.append((bytes, isKept, then))
    if reports.count == 1 { queue.connection.loop.enqueue { [self] in sendReports() } }
  }

  private func sendReports() {
    if reports.isEmpty { return }
    let next = reports
    (reports, size) = ([], 0)
    let isKept = next.contains { $0.isKept }
    queue.connection.perform { [self] in
      try await send(RemoteProtocol.bundle(next.map(\.bytes)), isKept: isKept)
    } then: { result in
      for report in next { report.then(result) }
    }
  }

  /// Passes reports to the script itself if it may have time for them, which is faster than the way through the stream: an
  /// op, there and back, takes a fifth less time. Else the server stores them until the script takes them.
  private func send(_ bundle: [UInt8], isKept: Bool) async throws(FlowError) {
    if bundle.count <= Self.mostBytes, passing + bundle.count <= Self.mostPassing,
      LuaVM.monotonicTime >= busyUntil, !isKept
    {
      passing += bundle.count
      defer { passing -= bundle.count }
      if try await pass(bundle) { return }
      busyUntil = LuaVM.monotonicTime.later(by: Self.longestBusy)
      // A script that has ended reads nothing any more.
      if isOver { return }
    }
    do throws(FlowError) { try await queue.report(bundle, script: script) } catch {
      // It has room again once the jobs that the reports are about are removed.
      if error.jetStreamCode != nil, try await pass(bundle) { return }
      throw error
    }
  }

  private func pass(_ bundle: [UInt8]) async throws(FlowError) -> Bool {
    let reply = try await queue.ask(script, RemoteQuestion.reports(bundle).bytes)
    return reply.flatMap { RemoteQuestion.readReply($0) } != nil
  }

  /// How long it is looked for a function that isn't on the server: one that was killed and started again may not have read
  /// all that it has stored.
  private static let patience = Duration.seconds(3)

  /// The function with a name; it comes from the server once.
  func code(_ name: ByteString) async throws(FlowError) -> WorkerCode {
    try await codes.value(name) {
      let bytes = try await queue.connection.loop.retrying(for: Self.patience) {
        () throws(FlowError) in try await queue.objects.get(name)
      }
      guard let bytes else {
        throw FlowError(.error, "the code of the op isn't on the server any more")
      }
      return try made(name, bytes)
    }
  }

  private func made(
    _ name: ByteString, _ bytes: ByteString
  ) throws(FlowError) -> WorkerCode {
    // Bytecode is executed as it is.
    let digest = try asFlowErrors { () throws(SystemError) in
      try FileHash.sha256.digest(of: bytes, Cancellation())
    }
    let opened = queue.seal.map { $0.open(code: bytes.bytes) } ?? bytes.bytes
    guard digest == name, let opened, let content = RemoteCode.read(opened) else {
      throw FlowError(.error, "the code of the op isn't what its script has sent")
    }
    return WorkerCode(
      id: pool.makeNumber(), package: CodePackage(trusting: content.function.bytes),
      modules: content.modules, native: content.native)
  }
}
