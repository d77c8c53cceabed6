internal import FlowSystem
import Synchronization

/// An exclusive lock of the kernel on a file: of this process among all that lock the same file, and of this lock among
/// all of the process. The kernel releases it with the process, however that ends.
///
/// May be used from any thread.
package final class FileLock: Sendable {
  package let path: ByteString
  package let file: FileIdentity
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
      switch try Self.attempt(path, namesHolder: !waits) {
      case .locked(let opened, let file):
        self.file = file
        descriptor = Atomic(opened)
        return
      case .held(_, let holder):
        guard waits else { throw Self.refusal(of: path, holder) }
        cancellation.pause(patience)
        patience = min(patience * 2, Self.patience.longest)
      }
    }
    throw .cancelled
  }

  /// Takes the lock if nobody holds it; else which file that is.
  package static func take(
    _ path: ByteString
  ) throws(SystemError) -> (lock: FileLock?, file: FileIdentity) {
    switch try attempt(path, namesHolder: false) {
    case .locked(let opened, let file): return (FileLock(path, file, opened), file)
    case .held(let file, _): return (nil, file)
    }
  }

  private init(_ path: ByteString, _ file: FileIdentity, _ opened: Int32) {
    self.path = path
    self.file = file
    descriptor = Atomic(opened)
  }

  private enum Attempt {
    case locked(descriptor: Int32, FileIdentity)
    case held(FileIdentity, holder: Int32?)
  }

  private static func attempt(
    _ path: ByteString, namesHolder: Bool
  ) throws(SystemError) -> Attempt {
    while true {
      let opened = try Self.open(path)
      let isLocked = flock(opened, LOCK_EX | LOCK_NB) == 0
      let problem = errno
      let file = FileIdentity(of: opened)
      // Another one may have removed or replaced the file since it was opened.
      if isLocked, file == FileIdentity(at: path) { return .locked(descriptor: opened, file) }
      let holder = namesHolder && !isLocked ? Self.holder(of: opened) : nil
      close(opened)
      if isLocked { continue }
      guard problem == EWOULDBLOCK else { throw SystemError("lock", path, problem) }
      return .held(file, holder: holder)
    }
  }

  deinit { release() }

  package var isReleased: Bool { descriptor.load(ordering: .relaxed) < 0 }

  /// Releases it; the file stays.
  package func release() {
    let held = descriptor.exchange(-1, ordering: .relaxed)
    if held >= 0 { close(held) }
  }

  private static func open(_ path: ByteString) throws(SystemError) -> Int32 {
    let opened = path.withCString { FlowSystem.open($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o666) }
    guard let opened else { throw .nul(in: path) }
    if opened >= 0 { return opened }
    let problem = errno
    guard [EACCES, EROFS, EPERM].contains(problem) else { throw SystemError("lock", path, problem) }
    // A file that can't be written can be locked.
    let read = path.withCString { FlowSystem.open($0, O_RDONLY | O_CLOEXEC) } ?? -1
    if read >= 0 { return read }
    // Without a file the problem is that none can be made.
    if errno == ENOENT { throw SystemError("lock", path, problem) }
    throw SystemError("lock", path, errno, isWritten: false)
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

/// A file, whatever its names are.
package struct FileIdentity: Hashable, Sendable {
  private let device: UInt64
  private let number: UInt64

  fileprivate init(of descriptor: Int32) {
    var status = stat()
    self.init(fstat(descriptor, &status) == 0 ? status : stat())
  }

  fileprivate init(at path: ByteString) {
    var status = stat()
    self.init(path.withCString { stat($0, &status) } == 0 ? status : stat())
  }

  private init(_ status: stat) {
    device = UInt64(status.st_dev)
    number = UInt64(status.st_ino)
  }
}
