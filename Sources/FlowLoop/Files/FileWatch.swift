internal import FlowSystem

/// The beginning of a watch, made on another thread than the loop's.
package struct FileWatchStart: Sendable {
  let inotify: Inotify
  let tree: WatchedTree

  /// Begins to watch a folder, or a file by the folder that has it and those of the links that lead to it. Blocks.
  ///
  /// - Parameters:
  ///   - path: The path, at which something exists.
  ///   - isRecursive: Whether to watch the folders in a folder, too; links aren't followed.
  ///   - cancellation: Asked between entries.
  /// - Throws: A `SystemError`, also when the system allows no more watches.
  package init(
    _ path: ByteString, isRecursive: Bool, _ cancellation: Cancellation
  ) throws(SystemError) {
    guard let status = try FileStatus.read(path, follows: true) else {
      throw SystemError("watch", path, ENOENT)
    }
    inotify = try Inotify()
    let isFolder = status.kind == .directory
    let scan: WatchScan =
      if isFolder {
        try WatchScan(folder: path, from: "", isRecursive: isRecursive, inotify, cancellation)
      } else {
        try WatchScan(file: path, inotify, cancellation)
      }
    tree = WatchedTree(path, isRecursive: isRecursive && isFolder, scan)
  }
}

/// Reports changes of a folder or file to code on a loop that waits for them.
///
/// The loop is kept from being idle only while something waits: until then the system collects
/// reports, and says so if they are too many. Confined to the loop's thread.
package final class FileWatch: LoopJob {
  /// The result of a wait: a change, or nil at the end of the watch.
  package typealias Outcome = Result<FileChange?, SystemError>

  package let loop: FlowEventLoop
  private var tree: WatchedTree
  /// nil once it is closed.
  private var inotify: Inotify?
  /// Set while something waits and no scan is in progress.
  private var readiness: DescriptorWatch?
  private var waiting: [(number: Int, body: (Outcome) -> Void)] = []
  private var lastNumber = 0
  /// The scan in progress.
  private var scan: Cancellation?
  private var failure: SystemError?
  /// Reports that were read and not handled.
  private var buffer: [UInt8] = []
  private var offset = 0
  private var departureTimer: LoopTimer?
  /// Called once, on the loop's thread, when the watch was closed or forgotten.
  package var onClose: (() -> Void)?

  /// How long the other half of a move is awaited, in seconds. The system reports both together.
  private static let patience = Duration.milliseconds(20)
  private static let bufferSize = 1 << 16
  /// How many changes are kept until something takes them.
  private static let changeLimit = 4096

  /// Continues a watch on a loop.
  package init(_ start: FileWatchStart, on loop: FlowEventLoop) {
    loop.checkThread()
    self.loop = loop
    inotify = start.inotify
    tree = start.tree
  }

  deinit {
    scan?.request()
    release()
    // The watch may be released within a collection, which is no time to call anything.
    if let onClose { loop.enqueue(onClose) }
  }

  /// The path that was given.
  package var path: ByteString { tree.path }

  /// Whether it was closed.
  package var isClosed: Bool { inotify == nil }

  /// Calls `body` once with the next change: during the call if there is one, else when it comes.
  ///
  /// - Returns: A number for `stopWaiting`; nil if `body` was called.
  package func wait(_ body: @escaping (Outcome) -> Void) -> Int? {
    loop.checkThread()
    lastNumber += 1
    waiting.append((lastNumber, body))
    let number = lastNumber
    proceed()
    return waiting.contains { $0.number == number } ? number : nil
  }

  /// Ends a wait without a result.
  package func stopWaiting(_ number: Int) {
    waiting.removeAll { $0.number == number }
    updateReadiness()
  }

  /// Takes back a change that could not be used, for the next wait.
  package func giveBack(_ change: FileChange) {
    loop.checkThread()
    tree.changes.putBack(change)
    deliver()
    updateReadiness()
  }

  /// Ends the watch; those that wait get its end.
  package func close() {
    loop.checkThread()
    guard inotify != nil else { return }
    readiness?.end()
    readiness = nil
    departureTimer?.cancel()
    departureTimer = nil
    scan?.request()
    release()
    deliver()
    onClose.take()?()
  }

  /// Closes the descriptor, on another thread: that takes the kernel several milliseconds.
  private func release() {
    guard let released = inotify.take() else { return }
    HelperThreads.shared.run { withExtendedLifetime(released) {} }
  }

  /// Called by the loop when there are reports.
  package func run() { proceed() }

  /// Handles the reports that are there, and passes on their changes.
  private func proceed() {
    // Changes for which nothing waits are left to the system, which limits their number.
    let limit = max(waiting.count, Self.changeLimit)
    while scan == nil, failure == nil, !tree.isGone, tree.changes.count < limit, let inotify {
      if let place = tree.folderToScan {
        begin(place, inotify)
      } else if !handleNext(), !read(inotify) {
        break
      }
    }
    if let inotify { endWatches(inotify) }
    deliver()
    updateReadiness()
  }

  private func endWatches(_ inotify: Inotify) {
    for watch in tree.watchesToEnd { flowsystem_unwatch_folder(inotify.descriptor, watch) }
    tree.watchesToEnd = []
  }

  /// Handles one report that was read; returns false when there is none.
  private func handleNext() -> Bool {
    var event = flowsystem_file_event()
    let isFound = buffer.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress,
        flowsystem_next_file_event(base, bytes.count, &offset, &event)
      else { return false }
      tree.handle(event)
      return true
    }
    return isFound
  }

  /// Reads reports; returns false when there are none.
  private func read(_ inotify: Inotify) -> Bool {
    offset = 0
    while true {
      var number: Int32 = 0
      buffer = [UInt8](unsafeUninitializedCapacity: Self.bufferSize) { bytes, count in
        let result = FlowSystem.read(inotify.descriptor, bytes.baseAddress, Self.bufferSize)
        number = result < 0 ? errno : 0
        count = max(result, 0)
      }
      if number != EINTR { break }
    }
    return !buffer.isEmpty
  }

  /// Scans a new folder, or everything. Reports that come meanwhile are read afterwards.
  private func begin(_ place: ByteString, _ inotify: Inotify) {
    tree.folderToScan = nil
    // Before the scan, which may find a folder that was moved out and in again: it would get the
    // watch that is about to be ended.
    endWatches(inotify)
    let cancellation = Cancellation()
    scan = cancellation
    let (path, isFile, isRecursive) = (tree.path, tree.name != nil, tree.isRecursive)
    loop.offload {
      do throws(SystemError) {
        if isFile { return .success(try WatchScan(file: path, inotify, cancellation)) }
        return .success(
          try WatchScan(
            folder: path, from: place, isRecursive: isRecursive, inotify, cancellation))
      } catch {
        return .failure(error)
      }
    } then: { [weak self] (result: Result<WatchScan, SystemError>) in
      self?.scanned(place, result)
    }
  }

  private func scanned(_ place: ByteString, _ result: Result<WatchScan, SystemError>) {
    scan = nil
    if isClosed { return }
    switch result {
    case .success(let scan):
      if place.isEmpty { tree.update(scan) } else { tree.add(scan.folders) }
    case .failure(let error):
      // A new folder may be gone again, which is reported; a top that is gone has its own report.
      let isMissing = error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP
      if !isMissing { failure = error }
    }
    proceed()
  }

  /// Passes on changes to those that wait, in their order.
  private func deliver() {
    while !waiting.isEmpty {
      let outcome: Outcome
      if isClosed {
        outcome = .success(nil)
      } else if let change = tree.changes.popFirst() {
        outcome = .success(change)
      } else if let failure {
        outcome = .failure(failure)
      } else if tree.isGone {
        outcome = .success(nil)
      } else {
        return
      }
      waiting.removeFirst().body(outcome)
    }
  }

  /// Watches the descriptor exactly while something waits for it.
  private func updateReadiness() {
    let isNeeded = !waiting.isEmpty && scan == nil && failure == nil && !isClosed
    if !isNeeded {
      readiness?.end()
      readiness = nil
      departureTimer?.cancel()
      departureTimer = nil
      return
    }
    if readiness == nil, let inotify {
      do throws(SystemError) { readiness = try loop.watch(inotify.descriptor, self) } catch {
        failure = error
        deliver()
        return
      }
    }
    if tree.hasDeparture, departureTimer == nil {
      departureTimer = loop.scheduleOutside(after: Self.patience) { [weak self] in
        guard let self else { return }
        departureTimer = nil
        tree.endDeparture()
        proceed()
      }
    }
  }
}
