/// A change of a file or folder that is watched.
package struct FileChange: Sendable, Equatable {
  /// The kind of a change.
  package enum Kind: String, Sendable {
    case created, changed, removed, moved
    /// Changes were lost, because there were too many.
    case overflow
  }

  package let kind: Kind
  /// The path, which begins with the path that is watched.
  package let path: ByteString
  /// The path before a move.
  package var origin: ByteString?
  /// Whether it is a folder.
  package let isFolder: Bool
}

/// Changes that nobody has taken yet, in their order. One that adds nothing to an earlier one is
/// dropped.
struct FileChangeQueue {
  private var changes = FIFO<FileChange>()
  /// The kind of the latest change of each path, and its number.
  private var latest: [ByteString: (kind: FileChange.Kind, number: Int)] = [:]
  /// The number of the first change in the queue.
  private var firstNumber = 0

  /// The number of changes in the queue.
  var count: Int { changes.count }

  mutating func append(_ change: FileChange) {
    if let last = latest[change.path] {
      if last.kind == change.kind, change.kind != .moved { return }
      // The content of a new file is read after that anyway.
      if change.kind == .changed, last.kind == .created { return }
    }
    // Another file may get the name.
    if let origin = change.origin { latest[origin] = nil }
    latest[change.path] = (change.kind, firstNumber + changes.count)
    changes.append(change)
  }

  /// Adds a change that was taken, at its place before the others.
  mutating func putBack(_ change: FileChange) {
    firstNumber -= 1
    if latest[change.path] == nil { latest[change.path] = (change.kind, firstNumber) }
    changes.prepend(change)
  }

  mutating func popFirst() -> FileChange? {
    guard let change = changes.popFirst() else { return nil }
    if latest[change.path]?.number == firstNumber { latest[change.path] = nil }
    firstNumber += 1
    return change
  }
}
