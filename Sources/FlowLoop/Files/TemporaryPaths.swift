internal import FlowSystem

/// The temporary files and folders of the process: what is left of them is removed when it exits, or when a signal ends
/// it.
///
/// Threads that write files aren't awaited at the exit, so their unfinished files have to be
/// removed there.
// The mutex guards the paths.
package final class TemporaryPaths: @unchecked Sendable {
  package static let shared = TemporaryPaths()

  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var paths: [ByteString: Temporary] = [:]
  /// Whether the process ends, so that a new path is removed at once.
  private var isClosed = false

  private struct Temporary {
    var isFolder: Bool
    /// The list that a signal handler finds.
    var noted: OpaquePointer?
  }

  private init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    atexit { TemporaryPaths.shared.removeAll() }
    flowsystem_watch_end()
  }

  /// Adds a path that has just been made.
  package func insert(_ path: ByteString, isFolder: Bool) {
    pthread_mutex_lock(mutex)
    let isLate = isClosed
    if !isLate {
      let noted = path.withCString { flowsystem_note_temporary($0, isFolder) } ?? nil
      paths[path] = Temporary(isFolder: isFolder, noted: noted)
    }
    pthread_mutex_unlock(mutex)
    if isLate { Self.remove(path, isFolder: isFolder) }
  }

  /// Forgets a path, which is removed or has another name now.
  package func forget(_ path: ByteString) {
    pthread_mutex_lock(mutex)
    flowsystem_forget_temporary(paths.removeValue(forKey: path)?.noted)
    pthread_mutex_unlock(mutex)
  }

  /// Removes a temporary folder with all that is in it, unless it has been removed. Blocks.
  ///
  /// - Throws: A `SystemError` when something in it can't be removed.
  package func removeFolder(_ path: ByteString) throws(SystemError) {
    defer { forget(path) }
    do throws(SystemError) {
      try FileRemoval.removeTemporary(path)
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  private static func remove(_ path: ByteString, isFolder: Bool) {
    if isFolder {
      try? FileRemoval.removeTemporary(path)
    } else {
      try? FileRemoval.remove(path, recursive: false, Cancellation())
    }
  }

  /// Removes all of them; for the end of the process.
  package func removeAll() {
    pthread_mutex_lock(mutex)
    let left = paths
    isClosed = true
    pthread_mutex_unlock(mutex)
    for (path, temporary) in left {
      Self.remove(path, isFolder: temporary.isFolder)
      forget(path)
    }
  }
}
