internal import FlowEngine
internal import FlowSystem

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
    try database.prepare(
      """
      UPDATE runs SET is_finished = 0, epoch = ?2, is_held = 1, pid = ?3, host = ?4, boot = ?5,
        start = ?6, beat = ?7 WHERE number = ?1
      """, number, epoch, me.pid, me.host, me.boot, me.start, WallClock.now()
    ).run()
  }
}

/// The time of the calendar, for people: their numbers give the order of runs and records.
enum WallClock {
  /// Seconds since 1970.
  static func now() -> Double { Double(SystemClock.read(CLOCK_REALTIME)) / 1e9 }
}
