internal import FlowEngine
internal import Glibc

/// Who may write about a run. Each process that continues the run increases its `epoch`, and a process
/// writes only while the epoch is still its own.
///
/// On one machine a lease is live as long as its process exists. Another container or machine isn't visible;
/// its lease is live while its heartbeat is at most a minute old. A process that loses its lease that way
/// can't do harm: its next commit fails.
struct RunLease {
  var epoch: Int64
  var isHeld: Bool
  var holder: ProcessIdentity
  /// The time of the last heartbeat, in seconds since 1970.
  var beat: Double

  /// How often a process that can't be seen has to give a sign of life, in seconds.
  static let interval = 15.0
  private static let patience = 60.0

  /// The columns that `init` reads, from this one on.
  static let columns = "epoch, is_held, pid, host, boot, start, beat"

  init(_ row: StoreStatement, from column: Int32) {
    epoch = row.integer(column)
    isHeld = row.integer(column + 1) != 0
    holder = ProcessIdentity(
      pid: row.integer(column + 2), host: row.text(column + 3), boot: row.text(column + 4),
      start: row.integer(column + 5))
    beat = row.double(column + 6)
  }

  /// Whether a process is executing the run.
  var isLive: Bool {
    guard isHeld else { return false }
    switch holder.life {
    case .alive: return true
    case .ended: return false
    // Also a clock that was set back makes a heartbeat old.
    case .unknown: return abs(WallClock.now() - beat) <= Self.patience
    }
  }

  /// Gives a run to this process.
  static func take(_ number: Int64, _ epoch: Int64, in database: StoreDatabase) throws(FlowError) {
    let me = ProcessIdentity.current
    let update = try database.prepare(
      """
      UPDATE runs SET is_finished = 0, epoch = ?2, is_held = 1, pid = ?3, host = ?4, boot = ?5,
        start = ?6, beat = ?7 WHERE number = ?1
      """)
    update.bind(1, number)
    update.bind(2, epoch)
    update.bind(3, me.pid)
    update.bind(4, me.host)
    update.bind(5, me.boot)
    update.bind(6, me.start)
    update.bind(7, WallClock.now())
    try update.run()
  }
}

/// The time of the calendar, for people: the order of runs and records is that of their numbers.
enum WallClock {
  /// Seconds since 1970.
  static func now() -> Double { Double(SystemClock.read(CLOCK_REALTIME)) / 1e9 }
}

/// A process that executes a run, distinguishable from a later one of the same number.
struct ProcessIdentity: Equatable, Sendable {
  var pid: Int64
  /// The name of the machine.
  var host: ByteString
  /// The start of the machine, and the space in which process numbers are unique: a container has its own.
  var boot: ByteString
  /// When the process was started, in ticks since the start of the machine.
  var start: Int64

  /// This process.
  static let current = ProcessIdentity(
    pid: Int64(getpid()), host: hostName, boot: bootName, start: start(of: Int64(getpid())) ?? 0)

  /// What is known about whether the process still exists.
  enum Life {
    case alive
    case ended
    /// Only its heartbeat can tell.
    case unknown
  }

  var life: Life {
    let here = ProcessIdentity.current
    guard host == here.host else { return .unknown }
    if boot == here.boot { return isRunning ? .alive : .ended }
    // The same machine after a restart, or another container on it.
    return isOfEarlierStart ? .ended : .unknown
  }

  /// Whether the machine has been started since then.
  var isOfEarlierStart: Bool {
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
        readlink("/proc/self/ns/pid", $0.assumingMemoryBound(to: CChar.self), buffer.count)
      } ?? -1
    }
    return ByteString(Array(boot.prefix(36)) + [UInt8(ascii: " ")] + name.prefix(max(count, 0)))
  }()

  /// When a process was started; nil when there is none of this number, or it has ended and only its
  /// status is left.
  static func start(of pid: Int64) -> Int64? {
    guard let text = text(of: "/proc/\(pid)/stat"),
      // The name of the program may contain anything, also parentheses.
      let close = text.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let fields = text[close...].split(separator: UInt8(ascii: " "))
    // The field 22; that after the parenthesis is the third one.
    guard fields.count > 20, fields[1].first != UInt8(ascii: "Z") else { return nil }
    return Int64(String(decoding: fields[20], as: UTF8.self))
  }

  private static func text(of path: ByteString) -> [UInt8]? {
    try? Files.read(path, Cancellation()).bytes
  }
}
