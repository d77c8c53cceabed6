package import FlowBytes

/// A process that executes a run, distinguishable from a later one of the same number.
package struct ProcessIdentity: Equatable, Sendable {
  package var pid: Int64
  /// The name of the machine.
  package var host: ByteString
  /// The start of the machine, and the space in which process numbers are unique: a container has its own.
  package var boot: ByteString
  /// When the process was started, in ticks since the start of the machine.
  package var start: Int64

  package init(pid: Int64, host: ByteString, boot: ByteString, start: Int64) {
    (self.pid, self.host, self.boot, self.start) = (pid, host, boot, start)
  }

  /// This process.
  package static let current = ProcessIdentity(
    pid: Int64(getpid()), host: hostName, boot: bootName, start: start(of: Int64(getpid())) ?? 0)

  /// Whether the process still exists, as far as that is known.
  package enum Life {
    case alive
    case ended
    /// Only its heartbeat can tell.
    case unknown
  }

  package var life: Life {
    let here = ProcessIdentity.current
    guard host == here.host else { return .unknown }
    if boot == here.boot { return isRunning ? .alive : .ended }
    // Either this machine after a restart, or another container on it.
    return isOfEarlierStart ? .ended : .unknown
  }

  /// Whether the machine has been started since then.
  package var isOfEarlierStart: Bool {
    boot.bytes.prefix(36) != ProcessIdentity.current.boot.bytes.prefix(36)
  }

  /// Whether a process of this machine exists.
  private var isRunning: Bool {
    guard start != 0, ProcessIdentity.current.start != 0 else {
      // There was no /proc when it was started, or there is none now.
      guard let number = pid_t(exactly: pid), number > 0 else { return false }
      return kill(number, 0) == 0 || errno == EPERM
    }
    return Self.start(of: pid) == start
  }

  private static let hostName: ByteString = {
    var name = [UInt8](repeating: 0, count: 256)
    let found = name.withUnsafeMutableBytes { buffer in
      buffer.baseAddress.map { gethostname($0.assumingMemoryBound(to: CChar.self), 255) } ?? -1
    }
    return found == 0 ? ByteString(name.prefix { $0 != 0 }) : "localhost"
  }()

  private static let bootName: ByteString = {
    let boot = text(of: "/proc/sys/kernel/random/boot_id") ?? []
    var name = [UInt8](repeating: 0, count: 64)
    let count = name.withUnsafeMutableBytes { buffer in
      buffer.baseAddress.map {
        readlink(
          "/proc/self/ns/pid" as String, $0.assumingMemoryBound(to: CChar.self), buffer.count)
      } ?? -1
    }
    return ByteString(Array(boot.prefix(36)) + [UInt8(ascii: " ")] + name.prefix(max(count, 0)))
  }()

  /// When a process was started; nil when there is none of this number, or it has ended and only its
  /// status is left.
  package static func start(of pid: Int64) -> Int64? {
    guard let text = text(of: "/proc/\(pid)/stat"),
      // The name of the program may contain anything, also parentheses.
      let close = text.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let fields = text[close...].split(separator: UInt8(ascii: " "))
    // The field 22; that after the parenthesis is the third one.
    guard fields.count > 20, fields[1].first != UInt8(ascii: "Z") else { return nil }
    return Int64(String(decoding: fields[20], as: UTF8.self))
  }

  /// A short file of /proc, which has no size.
  private static func text(of path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var text = [UInt8](repeating: 0, count: 4096)
    let count = text.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    return count > 0 ? Array(text.prefix(count)) : nil
  }
}

/// The path of the program that this process executes; nil without /proc.
package var executablePath: ByteString? {
  guard let path = realpath("/proc/self/exe" as String, nil) else { return nil }
  defer { free(path) }
  return ByteString(cString: path)
}

/// The bytes of a page of memory.
package let pageSize = max(sysconf(Int32(_SC_PAGESIZE)), 4096)

/// Gives pages to memory that begins with one: all at once costs less than a fault for each. (Huge pages are slow where a
/// virtual machine has given its free memory back to its host.) Older kernels do nothing.
package func populate(_ memory: UnsafeMutableRawPointer, _ bytes: Int) {
  madvise(memory, bytes & ~(pageSize - 1), MADV_POPULATE_WRITE)
}
