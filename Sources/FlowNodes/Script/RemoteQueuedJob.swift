internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// A job of a script that other nodes execute, from its submission to its end. Confined to the thread of the
/// host's loop.
final class RemoteQueuedJob {
  let task: any WorkerTask
  let number: UInt64
  let job: WorkerJob
  let code: RemoteCode
  let tags: RemoteTags
  let opFiles: RemoteOpFiles
  /// See `KeptExecution.identity`; empty if the op isn't kept.
  let identity: ByteString
  /// Whether a node may have finished it for an earlier process of the script.
  let wasInterrupted: Bool
  /// Where it is.
  var state: RemoteJobState
  /// Its files, once the server has them.
  var files: RemoteJobFiles?
  /// The receiver of the files that it gives; nil before the report about its end.
  var delivered: RemoteDelivery?
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
    _ tags: RemoteTags, _ files: RemoteOpFiles, _ shared: RemoteSharedFolders,
    keeping: (any KeptExecution)?, _ external: ExternalWork
  ) {
    self.task = task
    identity = keeping?.identity ?? ""
    wasInterrupted = keeping?.wasInterrupted ?? false
    self.number = number
    self.job = job
    self.code = code
    self.tags = tags
    opFiles = files
    if files.needs.isEmpty { self.files = RemoteJobFiles(gives: files.gives, shared: shared) }
    state = RemoteJobState(hasFiles: files.needs.isEmpty, at: LuaVM.monotonicTime)
    self.external = external
  }

  /// Whether it may share a message. Jobs with files, or with a worker for themselves, don't; nor do those with a timeout,
  /// which counts from a beginning that is reported only for jobs alone.
  var isSmall: Bool {
    !state.isAlone && opFiles.needs.isEmpty && opFiles.gives.isEmpty && !task.isExclusive
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
