internal import FlowEngine
@_spi(Scripting) internal import FlowLoop
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// Puts the jobs of a script into the queue of a server, short ones together. Confined to the thread of the host's loop.
///
/// The server hands jobs out in the order in which they came, whatever script they are of. So a script has only as many in
/// the queue as the nodes take in a moment, and the next ones go there as these are taken: the jobs of another script
/// wait for these, and not for all that this one has.
final class RemoteOutbox {
  typealias Job = RemoteQueuedJob

  private let queue: RemoteQueue
  private let script: ByteString
  private let nodes: RemoteNodes
  // Unowned: the host keeps it as long as its jobs.
  private unowned let loop: FlowEventLoop
  // Unowned: it has this outbox.
  private unowned let dispatcher: RemoteDispatcher
  private var packing = RemotePacking()
  private var lines: [RemoteTags: Line] = [:]
  private var isScheduled = false
  /// Whether there is a timer for jobs that wait for more of them.
  private var isTimed = false

  /// The jobs that need certain tags.
  private final class Line {
    let tags: RemoteTags
    /// Those that aren't sent yet.
    var waiting = FIFO<Job>()
    /// Since when they wait for more of them, on the system's clock; nil if they don't.
    var waitingSince: Int64?
    /// How many messages with others are in the queue, or on a node.
    var underway = 0
    /// How many of these no node has yet.
    var queued = 0
    /// How many were handed out in this period and in the one before, and when this one began.
    private var taken = (now: 0, before: 0)
    private var periodStart: Int64 = 0

    init(_ tags: RemoteTags) { self.tags = tags }

    /// Notes that a node has a message.
    func handedOut(at now: Int64) {
      queued -= 1
      beginPeriod(at: now)
      taken.now += 1
    }

    private func beginPeriod(at now: Int64) {
      let age = now - periodStart
      if age < RemoteOutbox.period { return }
      taken = (0, age < 2 * RemoteOutbox.period ? taken.now : 0)
      periodStart = now
    }

    /// How many more messages the queue may have: one for each worker, and as many as the nodes take in a moment.
    func room(workers: Int, at now: Int64) -> Int {
      beginPeriod(at: now)
      let known = workers > 0 ? workers : RemoteOutbox.unknownWorkers
      return max(0, known + taken.now + taken.before - queued)
    }
  }

  /// How many nanoseconds jobs wait for more of them at most: all workers may have ops that only wait.
  private static let patience: Int64 = 20_000_000
  /// In so many nanoseconds nodes take what the queue may have: a script that doesn't look at them for less has no
  /// node without ops.
  private static let period: Int64 = 500_000_000
  /// How many workers are assumed as long as no node has said that it is there.
  private static let unknownWorkers = 16

  init(
    _ queue: RemoteQueue, _ script: ByteString, _ nodes: RemoteNodes, _ loop: FlowEventLoop,
    of dispatcher: RemoteDispatcher
  ) {
    self.queue = queue
    self.script = script
    self.nodes = nodes
    self.loop = loop
    self.dispatcher = dispatcher
  }

  /// Notes what a job took.
  func note(_ time: Int64, of job: Job) { packing.note(time, of: job.code.name) }

  /// Sends a job with others at the end of the turn, or later while all workers have work.
  func put(_ job: Job) {
    guard !job.isInOutbox else { return }
    job.isInOutbox = true
    job.state.put()
    line(job.tags).waiting.append(job)
    look()
  }

  /// Looks for jobs that can be sent.
  func look() {
    guard !isScheduled, lines.values.contains(where: { !$0.waiting.isEmpty }) else { return }
    isScheduled = true
    loop.enqueue { [weak self] in self?.send() }
  }

  private func send() {
    isScheduled = false
    for line in lines.values { send(line) }
    sendLater()
  }

  /// Sends jobs that wait for more of them when their time has come.
  private func sendLater() {
    guard !isTimed, let first = lines.values.compactMap(\.waitingSince).min() else { return }
    isTimed = true
    let left = max(0, first.later(by: Self.patience) - LuaVM.monotonicTime)
    _ = loop.scheduleOutside(after: .nanoseconds(left)) { [weak self] in
      self?.isTimed = false
      self?.send()
    }
  }

  private func line(_ tags: RemoteTags) -> Line {
    if let known = lines[tags] { return known }
    let made = Line(tags)
    lines[tags] = made
    return made
  }

  private func send(_ line: Line) {
    let workers = nodes.workers(with: line.tags)
    let now = LuaVM.monotonicTime
    let room = line.room(workers: workers, at: now)
    if room == 0 || line.waiting.isEmpty {
      // A report about a hand-out, or an end, gives room.
      line.waitingSince = nil
      return
    }
    let isDue = line.waitingSince.map { now - $0 >= Self.patience } ?? false
    var ready: [Job] = []
    var messages: [[UInt8]] = []
    let jobs = AnyIterator { [dispatcher] () -> RemotePacking.Job? in
      while let job = line.waiting.popFirst() {
        if let bytes = dispatcher.message(job) {
          ready.append(job)
          messages.append(bytes)
          return RemotePacking.Job(code: job.code.name, size: bytes.count, isSmall: job.isSmall)
        }
        job.isInOutbox = false
      }
      return nil
    }
    let places = packing.messages(
      jobs, count: line.waiting.count, workers: workers, underway: line.underway, room: room,
      isDue: isDue)
    for job in ready[(places.last?.upperBound ?? 0)...].reversed() { line.waiting.prepend(job) }
    if line.waiting.isEmpty || places.count == room {
      line.waitingSince = nil
    } else if !places.isEmpty || line.waitingSince == nil {
      line.waitingSince = now
    }
    for place in places {
      send(RemoteParcel(line.tags, Array(ready[place])), RemoteProtocol.bundle(messages[place]))
    }
  }

  private func send(_ parcel: RemoteParcel, _ bytes: [UInt8]) {
    line(parcel.tags).underway += 1
    line(parcel.tags).queued += 1
    queue.connection.perform { [queue, script] in
      try await queue.submit(bytes, tags: parcel.tags.token, script: script)
    } then: { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let sequence):
        parcel.sequence = sequence
        if parcel.isEmpty { forget(parcel, sequence) }
      case .failure(let error):
        for job in parcel.jobs { dispatcher.end(job, error) }
      }
    }
  }

  /// A job has ended.
  func remove(_ job: Job) {
    guard let parcel = job.parcel else { return }
    parcel.remove(job)
    guard parcel.isEmpty else { return }
    ended(parcel)
    if let sequence = parcel.sequence { forget(parcel, sequence) }
  }

  /// All jobs of a message have ended.
  private func forget(_ parcel: RemoteParcel, _ sequence: UInt64) {
    // One that no node has was sent again, while another node had the job.
    if parcel.isHandedOut { queue.forget(sequence) } else { queue.withdraw(sequence) }
  }

  /// Takes a job out of the queue. The others of its message are sent again, unless a node has them.
  func withdraw(_ job: Job) {
    guard let parcel = job.parcel else { return }
    parcel.remove(job)
    if parcel.isHandedOut, !parcel.isEmpty { return }
    let others = parcel.removeAll()
    ended(parcel)
    if let sequence = parcel.sequence { queue.withdraw(sequence) }
    for other in others { put(other) }
  }

  /// A node has a job.
  func handedOut(_ job: Job) {
    guard let parcel = job.parcel, !parcel.isHandedOut else { return }
    parcel.isHandedOut = true
    line(parcel.tags).handedOut(at: LuaVM.monotonicTime)
    look()
  }

  private func ended(_ parcel: RemoteParcel) {
    line(parcel.tags).underway -= 1
    if !parcel.isHandedOut { line(parcel.tags).queued -= 1 }
    look()
  }
}

/// How many jobs travel in one message. Its jobs share the cost of a message, which matters while they are short;
/// but no node may be without work meanwhile, and one long job must not delay many short ones.
struct RemotePacking {
  /// A message has jobs for so many nanoseconds.
  static let work: Int64 = 10_000_000
  private static let mostJobs = 128
  private static let mostBytes = 65_536
  /// So many messages at a time keep one worker busy: it executes one while the next one comes.
  private static let messagesPerWorker = 2

  /// The recent times of jobs, in nanoseconds, by the names of their code.
  private var times: [ByteString: Int64] = [:]

  /// Notes what a job took.
  mutating func note(_ time: Int64, of code: ByteString) {
    guard time > 0 else { return }
    let time = min(time, Self.work * 1000)
    times[code] = times[code].map { max(1, ($0 * 7 + time) / 8) } ?? time
  }

  /// A job that is to be sent.
  struct Job {
    let code: ByteString
    let size: Int
    let isSmall: Bool
  }

  /// Divides jobs into messages, in their order. While all workers have work, short jobs at the end that don't fill a
  /// message aren't part of one: more may come until a worker needs them.
  ///
  /// - Parameters:
  ///   - jobs: The jobs, of which only those are taken that the messages have, and one more.
  ///   - count: How many these are.
  ///   - workers: How many workers the nodes have that can execute them.
  ///   - underway: How many messages those nodes have already, or are about to get.
  ///   - room: The most messages.
  ///   - isDue: Whether none of the jobs waits for others.
  /// - Returns: The places of each message's jobs.
  func messages(
    _ jobs: some Sequence<Job>, count: Int, workers: Int, underway: Int, room: Int = .max,
    isDue: Bool = false
  ) -> [Range<Int>] {
    let missing = max(0, max(1, workers) * Self.messagesPerWorker - underway)
    let share = missing > 0 ? (count + missing - 1) / missing : Self.mostJobs
    let most = max(1, min(share, Self.mostJobs))
    var messages: [Range<Int>] = []
    var begin = 0
    var (time, size) = (Int64(0), 0)
    var end = 0
    for job in jobs {
      let expected = job.isSmall ? times[job.code] ?? Self.work : Self.work
      let isFull =
        end - begin >= most || time + expected > Self.work || size + job.size > Self.mostBytes
      if end > begin, isFull {
        messages.append(begin..<end)
        if messages.count == room { return messages }
        (begin, time, size) = (end, 0, 0)
      }
      end += 1
      time += expected
      size += job.size
    }
    let mayWait =
      !isDue && missing == 0 && end - begin < most && time < Self.work
      && size < Self.mostBytes
    if begin < end, !mayWait { messages.append(begin..<end) }
    return messages
  }
}

/// A job of a script that other nodes execute, from its submission to its end. Confined to the thread of the
/// host's loop.
final class RemoteQueuedJob {
  let task: any WorkerTask
  let number: UInt64
  let job: WorkerJob
  let code: RemoteCode
  let tags: RemoteTags
  /// The files that it needs.
  let paths: [RemoteFilePaths]
  /// See `KeptExecution.identity`; empty if the op isn't kept.
  let identity: ByteString
  /// Whether a node may have finished it for an earlier process of the script.
  let wasInterrupted: Bool
  /// Where it is.
  var state: RemoteJobState
  /// Its files; those that it needs are here once the server has them.
  var files: RemoteJobFiles
  /// The message of the queue that it is part of; nil before it was sent.
  var parcel: RemoteParcel?
  /// Whether it is about to be sent.
  var isInOutbox = false
  /// Its message, for the number of times that it was put into the queue.
  var message: (round: UInt64, bytes: [UInt8])?
  /// Why it is to stop.
  var stop: WireError?
  /// Keeps the loop.
  let external: ExternalWork

  init(
    _ task: any WorkerTask, _ number: UInt64, _ job: WorkerJob, _ code: RemoteCode,
    _ tags: RemoteTags, _ context: OpContext?, _ shared: RemoteSharedFolders,
    _ external: ExternalWork
  ) {
    self.task = task
    identity = context?.keeping?.identity ?? ""
    wasInterrupted = context?.keeping?.wasInterrupted ?? false
    self.number = number
    self.job = job
    self.code = code
    self.tags = tags
    paths = context?.neededFiles ?? []
    files = RemoteJobFiles(gives: context?.givenFiles ?? [], shared: shared)
    state = RemoteJobState(hasFiles: paths.isEmpty, at: LuaVM.monotonicTime)
    self.external = external
  }

  /// Whether it may share a message. Jobs with files, or with a worker for themselves, don't; nor do those with a timeout,
  /// which counts from a beginning that is reported only for jobs alone.
  var isSmall: Bool {
    !state.isAlone && paths.isEmpty && files.gives.isEmpty && !task.isExclusive
      && !task.hasTimeout
  }
}

/// A message of the queue: the server hands its jobs out together, to one node.
final class RemoteParcel {
  let tags: RemoteTags
  private let all: [RemoteQueuedJob]
  /// How many of them haven't ended, and haven't been put into the queue again.
  private var left: Int
  /// Its place in the queue, once the server has stored it.
  var sequence: UInt64?
  /// Whether a node has it.
  var isHandedOut = false

  init(_ tags: RemoteTags, _ jobs: [RemoteQueuedJob]) {
    self.tags = tags
    all = jobs
    left = jobs.count
    for job in jobs {
      job.parcel = self
      job.isInOutbox = false
      job.message = nil
    }
  }

  var isEmpty: Bool { left == 0 }
  /// Those that haven't ended, and haven't been put into the queue again.
  var jobs: [RemoteQueuedJob] { all.filter { $0.parcel === self } }

  /// Removes a job.
  func remove(_ job: RemoteQueuedJob) {
    job.parcel = nil
    left -= 1
  }

  /// Removes all jobs.
  func removeAll() -> [RemoteQueuedJob] {
    let removed = jobs
    for job in removed { remove(job) }
    return removed
  }
}
