internal import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

/// Puts the jobs of a script into the queue of a server, short ones together. Confined to the thread of the host's loop.
final class RemoteOutbox {
  typealias Job = RemoteQueuedJob

  private let queue: RemoteQueue
  private let script: ByteString
  private let machines: RemoteMachines
  // Unowned: the host keeps it as long as its jobs.
  private unowned let loop: EventLoop
  /// Makes the message of a job; nil if it isn't to be executed any more.
  private let message: (Job) -> [UInt8]?
  /// Called with jobs that the server doesn't take.
  private let failed: (Job, FlowError) -> Void
  private var packing = RemotePacking()
  /// The jobs that aren't sent yet, by their tags.
  private var waiting: [RemoteTags: [Job]] = [:]
  /// Since when jobs with these tags wait for more of them, on the system's clock.
  private var waitingSince: [RemoteTags: Int64] = [:]
  private var isScheduled = false
  /// How many messages of jobs with these tags are in the queue, or on a machine.
  private var underway: [RemoteTags: Int] = [:]
  private var lastParcel: UInt64 = 0
  /// Part of the keys of messages: the server drops one with a key that it has had, also of an earlier outbox.
  private let mark = UInt64.random(in: 0 ... .max).hexadecimal
  /// Whether there is a timer for jobs that wait for more of them.
  private var isTimed = false

  /// How many nanoseconds jobs wait for more of them at most: all workers may have ops that only wait.
  private static let patience: Int64 = 20_000_000

  /// - Parameters:
  ///   - queue: The queue.
  ///   - script: The id of the script.
  ///   - machines: The machines that are there.
  ///   - loop: The host's loop.
  ///   - message: Makes the message of a job; nil if it isn't to be executed any more.
  ///   - failed: Called with each job that the server doesn't take.
  init(
    _ queue: RemoteQueue, _ script: ByteString, _ machines: RemoteMachines, _ loop: EventLoop,
    message: @escaping (Job) -> [UInt8]?, failed: @escaping (Job, FlowError) -> Void
  ) {
    self.queue = queue
    self.script = script
    self.machines = machines
    self.loop = loop
    self.message = message
    self.failed = failed
  }

  /// Notes what a job took.
  func note(_ time: Int64, of job: Job) { packing.note(time, of: job.code.name) }

  /// Sends a job with others at the end of the turn, or later while all workers have work.
  func put(_ job: Job) {
    guard !job.isInOutbox else { return }
    job.isInOutbox = true
    job.round += 1
    waiting[job.tags, default: []].append(job)
    look()
  }

  /// Looks for jobs that can be sent.
  func look() {
    guard !isScheduled, !waiting.isEmpty else { return }
    isScheduled = true
    loop.enqueue { [weak self] in self?.send() }
  }

  private func send() {
    isScheduled = false
    let all = waiting
    waiting = [:]
    for (tags, jobs) in all { send(jobs, tags) }
    sendLater()
  }

  /// Sends jobs that wait for more of them when their time has come.
  private func sendLater() {
    guard !isTimed, let first = waitingSince.values.min() else { return }
    isTimed = true
    let left = max(0, first.later(by: Self.patience) - LuaVM.monotonicTime)
    _ = loop.scheduleOutside(after: .nanoseconds(left)) { [weak self] in
      self?.isTimed = false
      self?.send()
    }
  }

  private func send(_ jobs: [Job], _ tags: RemoteTags) {
    let now = LuaVM.monotonicTime
    let isDue = waitingSince[tags].map { now - $0 >= Self.patience } ?? false
    var ready: [Job] = []
    var messages: [[UInt8]] = []
    for job in jobs {
      if let bytes = message(job) {
        ready.append(job)
        messages.append(bytes)
      } else {
        job.isInOutbox = false
      }
    }
    let known = zip(ready, messages).map {
      RemotePacking.Job(code: $0.code.name, size: $1.count, isSmall: $0.isSmall)
    }
    let places = packing.messages(
      known, workers: machines.workers(with: tags), underway: underway[tags] ?? 0, isDue: isDue)
    for place in places {
      send(RemoteParcel(tags, Array(ready[place])), RemoteProtocol.bundle(messages[place]))
    }
    let later = ready[(places.last?.upperBound ?? 0)...]
    guard !later.isEmpty else {
      waitingSince[tags] = nil
      return
    }
    waiting[tags] = later + (waiting[tags] ?? [])
    if !places.isEmpty || waitingSince[tags] == nil { waitingSince[tags] = now }
  }

  private func send(_ parcel: RemoteParcel, _ bytes: [UInt8]) {
    lastParcel += 1
    underway[parcel.tags, default: 0] += 1
    queue.submit(
      bytes, tags: parcel.tags.token, script: script, key: "\(script)-\(mark)-\(lastParcel)"
    ) { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let sequence):
        parcel.sequence = sequence
        if parcel.jobs.isEmpty { queue.withdraw(sequence) }
      case .failure(let error):
        for job in parcel.jobs { failed(job, error) }
      }
    }
  }

  /// A job has ended.
  func remove(_ job: Job) {
    guard let parcel = job.parcel else { return }
    parcel.remove(job)
    guard parcel.jobs.isEmpty else { return }
    ended(parcel)
    guard let sequence = parcel.sequence else { return }
    // One that no machine has was sent again, while another machine had the job.
    if parcel.isHandedOut { queue.forget(sequence) } else { queue.withdraw(sequence) }
  }

  /// Takes a job out of the queue. The others of its message are sent again, unless a machine has them.
  func withdraw(_ job: Job) {
    guard let parcel = job.parcel else { return }
    parcel.remove(job)
    if parcel.isHandedOut, !parcel.jobs.isEmpty { return }
    let others = parcel.removeAll()
    ended(parcel)
    if let sequence = parcel.sequence { queue.withdraw(sequence) }
    for other in others { put(other) }
  }

  private func ended(_ parcel: RemoteParcel) {
    underway[parcel.tags] = max(0, (underway[parcel.tags] ?? 0) - 1)
    look()
  }
}
