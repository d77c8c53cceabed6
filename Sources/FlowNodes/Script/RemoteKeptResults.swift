internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// The reports about ops of a kept run, as long as the server has to have them: until the ops are kept. A process that
/// continues the run finds there what nodes have finished for the one before. Confined to the thread of the host's
/// loop.
final class RemoteKeptResults {
  /// The id of the script for nodes: a new one for each process.
  let script: ByteString
  /// The ids that earlier processes of the run had.
  let earlier: [ByteString]
  private var queue: RemoteQueue?

  /// A message with reports, and how many of their ops aren't kept yet.
  private final class Held {
    let message: JetStreamMessage
    var count: Int

    init(_ message: JetStreamMessage, _ count: Int) {
      self.message = message
      self.count = count
    }
  }

  /// The reports that aren't acknowledged yet, by the numbers of their jobs.
  private var held: [UInt64: [Held]] = [:]
  /// When the server last got a sign that they are in use.
  private var lastExtension: Int64 = 0
  /// The ends of ops that earlier processes learnt, and perhaps didn't keep, by the identities of the ops.
  private var found: [ByteString: RemoteReport] = [:]

  /// Of so many processes before this one results are looked for.
  private static let mostEarlier: Int64 = 8
  /// How often the server gets a sign that reports are in use, in nanoseconds: well within the time after which it delivers
  /// one again.
  private static let interval: Int64 = 3_000_000_000

  /// Makes one for a kept run, with its name and the number of its processes; nil: no run is kept.
  init(_ run: (name: ByteString, epoch: Int64)?) {
    guard let run else {
      (script, earlier) = (.unique, [])
      return
    }
    script = "\(run.name)e\(run.epoch)"
    let first = max(1, run.epoch - Self.mostEarlier)
    earlier = first < run.epoch ? (first..<run.epoch).map { "\(run.name)e\($0)" } : []
  }

  // MARK: Of this process

  var isHolding: Bool { !held.isEmpty }

  /// Whether a job has ended whose op isn't kept yet.
  func isHolding(_ job: UInt64) -> Bool { held[job] != nil }

  /// Holds a message with reports until the ops of these jobs are kept.
  func hold(_ message: JetStreamMessage, of jobs: Set<UInt64>) {
    let entry = Held(message, jobs.count)
    for job in jobs { held[job, default: []].append(entry) }
  }

  /// The op of a job is kept, or needn't be: the server may forget the reports about it.
  func acknowledge(_ job: UInt64) {
    for entry in held.removeValue(forKey: job) ?? [] {
      entry.count -= 1
      guard entry.count == 0 else { continue }
      queue?.release(entry.message)
      entry.message.tell(.done)
    }
  }

  /// Shows the server from time to time that reports are in use, so that it doesn't deliver them again.
  func extend() {
    let now = LuaVM.monotonicTime
    guard now - lastExtension > Self.interval else { return }
    lastExtension = now
    // A message has reports about several jobs.
    let entries = Dictionary(
      held.values.joined().map { (ObjectIdentifier($0), $0) }, uniquingKeysWith: { $1 })
    for entry in entries.values { entry.message.tell(.inProgress) }
  }

  // MARK: Of earlier processes

  /// Reads what nodes have finished for earlier processes. Without it ops are executed again.
  func read(from queue: RemoteQueue) async {
    self.queue = queue
    for script in earlier { note((try? await queue.storedReports(of: script)) ?? []) }
  }

  private struct HandOut: Hashable {
    let number: UInt64
    let delivery: UInt64
  }

  private func note(_ messages: [[UInt8]]) {
    var handOuts: [HandOut: [RemoteReport]] = [:]
    for report in messages.flatMap({ RemoteReport.readAll($0) }) where !report.identity.isEmpty {
      let handOut = HandOut(number: report.number, delivery: report.delivery)
      // One may be there twice.
      if handOuts[handOut]?.contains(where: { $0.place == report.place }) == true { continue }
      handOuts[handOut, default: []].append(report)
    }
    for reports in handOuts.values {
      let reports = reports.sorted { $0.place < $1.place }
      // All of them, and the op has succeeded.
      guard let last = reports.last, last.place == UInt64(reports.count - 1),
        last.hasSucceeded
      else { continue }
      found[last.identity] = RemoteReport(
        number: last.number, delivery: last.delivery, lane: last.lane,
        news: reports.flatMap(\.news), identity: last.identity)
    }
  }

  /// The report that an earlier process would have taken as the end of an op, as one about a job of this process;
  /// nil for an op that has to be executed. Each one is returned once.
  func take(_ identity: ByteString, as job: UInt64) -> RemoteReport? {
    guard let report = found.removeValue(forKey: identity) else { return nil }
    return RemoteReport(
      number: job, delivery: report.delivery, lane: report.lane, news: report.news,
      identity: identity)
  }
}
