internal import FlowSystem
import Synchronization

/// An exclusive lock of the kernel on a file: of this process among all that lock the same file, and of this lock among
/// all of the process. The kernel releases it with the process, however that ends.
///
/// May be used from any thread.
package final class FileLock: Sendable {
  package let path: ByteString
  /// -1 once it is released.
  private let descriptor: Atomic<Int32>

  /// How long a wait lasts before the next attempt: in milliseconds, the first time and at most.
  private static let patience: (first: Int32, longest: Int32) = (5, 100)

  /// Takes the lock. Blocks, on a helper thread: until the file is free, if it `waits`.
  ///
  /// - Parameters:
  ///   - path: The file, which is made if there is none.
  ///   - waits: Whether to wait for the process that holds it.
  ///   - cancellation: Ends the wait.
  /// - Throws: A `SystemError`, with `EAGAIN` when another one holds the lock.
  package init(
    _ path: ByteString, waits: Bool, _ cancellation: Cancellation
  ) throws(SystemError) {
    self.path = path
    var patience = Self.patience.first
    while !cancellation.isRequested {
      let opened = try Self.open(path)
      if flock(opened, LOCK_EX | LOCK_NB) == 0 {
        // Another one may have removed or replaced the file since it was opened.
        if Self.isNamed(opened, path) {
          descriptor = Atomic(opened)
          return
        }
        close(opened)
        continue
      }
      let problem = errno
      let holder = waits ? nil : Self.holder(of: opened)
      close(opened)
      guard problem == EWOULDBLOCK else { throw SystemError("lock", path, problem) }
      guard waits else { throw Self.refusal(of: path, holder) }
      cancellation.pause(patience)
      patience = min(patience * 2, Self.patience.longest)
    }
    throw .cancelled
  }

  deinit { release() }

  package var isReleased: Bool { descriptor.load(ordering: .relaxed) < 0 }

  /// Releases it; the file stays.
  package func release() {
    let held = descriptor.exchange(-1, ordering: .relaxed)
    if held >= 0 { close(held) }
  }

  private static func open(_ path: ByteString) throws(SystemError) -> Int32 {
    var opened: Int32 = -1
    // A file that can't be written can be locked.
    for access in [O_RDWR | O_CREAT, O_RDONLY] {
      guard let result = path.withCString({ FlowSystem.open($0, access | O_CLOEXEC, 0o666) }) else {
        throw .nul(in: path)
      }
      opened = result
      if opened >= 0 || ![EACCES, EROFS, EPERM].contains(errno) { break }
    }
    if opened < 0 { throw SystemError("lock", path, errno) }
    return opened
  }

  private static func isNamed(_ descriptor: Int32, _ path: ByteString) -> Bool {
    var (mine, named) = (stat(), stat())
    return fstat(descriptor, &mine) == 0 && path.withCString { stat($0, &named) } == 0
      && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev
  }

  private static func refusal(of path: ByteString, _ holder: Int32?) -> SystemError {
    let who: ByteString =
      switch holder {
      case nil: "another process holds it"
      case getpid()?: "this process, \(getpid()), holds it already"
      case let number?: "process \(number) holds it"
      }
    return SystemError("can't lock '\(path)': \(who)", code: EAGAIN)
  }

  /// The number of the process that holds the lock of an opened file, as the kernel lists it; nil if it doesn't.
  ///
  /// A line is `1: FLOCK  ADVISORY  WRITE 4711 08:01:131074 0 EOF`: the process, and the device and number of the file.
  private static func holder(of descriptor: Int32) -> Int32? {
    var status = stat()
    guard fstat(descriptor, &status) == 0,
      let locks = try? Files.read("/proc/locks", in: nil, Cancellation())
    else { return nil }
    let file = ByteString(":\(status.st_ino)").bytes
    for line in locks.bytes.split(separator: UInt8(ascii: "\n")) {
      let words = line.split(separator: UInt8(ascii: " "))
      guard words.count > 5, ByteString(words[1]) == "FLOCK",
        words[5].suffix(file.count).elementsEqual(file)
      else { continue }
      return Int32(String(decoding: words[4], as: UTF8.self))
    }
    return nil
  }
}
