internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `Op:start(data, { overlap =, key = })`: the rule for a second start of an op while the first one runs.
final class Overlaps: HostService {
  /// The behaviour of a start.
  enum Rule: String, CaseIterable {
    /// Returns the run that is there.
    case join
    /// Begins when those before it have ended.
    case queue
    /// Cancels those before it, and begins when they have ended.
    case replace
    /// Is an error.
    case refuse
  }

  private struct Place: Hashable {
    let op: ByteString
    let key: ByteString
    /// A test has a loop of its own, which knows nothing of the script's runs.
    let loop: ObjectIdentifier
  }

  /// Runs of one op and key that don't run at the same time.
  private struct Line {
    let limit: Limit
    private(set) var runs: [Run] = []
    private var most = 16

    init(_ limit: Limit) { self.limit = limit }

    /// The last run that hasn't ended.
    mutating func last() -> Run? {
      while runs.last?.isConcluded == true { runs.removeLast() }
      return runs.last
    }

    mutating func add(_ run: Run) {
      runs.append(run)
      if runs.count <= most { return }
      runs.removeAll { $0.isConcluded }
      most = max(16, runs.count * 2)
    }
  }

  private var lines: [Place: Line] = [:]
  /// How many places there may be before those without a run are forgotten.
  private var most = 64

  /// Starts an op by the rule of its options, if these have one.
  static func start(
    _ op: Op, _ options: RunOptions?, _ host: ScriptHost, _ start: (Op) -> Run
  ) throws -> Run {
    guard let options, let rule = options.overlap else { return start(op) }
    return try host.service { Overlaps() }.start(op, rule, options.key, host, start)
  }

  private func start(
    _ op: Op, _ rule: Rule, _ key: ByteString, _ host: ScriptHost, _ start: (Op) -> Run
  ) throws -> Run {
    let place = Place(op: op.name, key: key, loop: ObjectIdentifier(host.loop))
    var line = lines[place] ?? Line(Limit("one \(op.name) at a time", maxConcurrent: 1))
    if let last = line.last() {
      switch rule {
      case .join: return last
      case .queue: break
      case .replace:
        for run in line.runs where !run.isConcluded {
          run.cancel(reason: "replaced by a later start")
        }
      case .refuse:
        throw host.raise(FlowError(.error, "'\(op.name)' runs already"))
      }
    }
    lines[place] = line
    let run = start(op.with(limits: op.limits + [line.limit]))
    // It may have ended, or started others.
    lines[place, default: line].add(run)
    prune()
    return run
  }

  /// Forgets places without a run, so that a script with a key for each request doesn't grow.
  private func prune() {
    guard lines.count > most else { return }
    lines = lines.filter { _, line in line.runs.contains { !$0.isConcluded } }
    most = max(64, lines.count * 2)
  }
}
