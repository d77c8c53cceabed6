import Foundation

/// A value that threads use one after another. `Mutex` of the standard library does the same, but the thread
/// sanitizer doesn't see its lock, and would report races that aren't there.
// Unchecked: the lock guards the value.
final class Locked<Content>: @unchecked Sendable {
  private let lock = NSLock()
  private var content: Content

  init(_ content: Content) {
    self.content = content
  }

  func withLock<Result>(_ body: (inout Content) throws -> Result) rethrows -> Result {
    try lock.withLock { try body(&content) }
  }
}
