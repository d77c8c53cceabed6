internal import CFlowSystem
internal import FlowEngine
internal import Glibc
internal import LuaVM

/// Shows the progress of groups and ops on the terminal, in one live line on stderr.
///
/// It checks for progress when something has changed and when the loop is idle, and draws at most
/// ten times a second. It has no timer, which would keep a script alive. All other output removes
/// the line first.
final class ProgressDisplay: ProgressMonitor {
  /// Running ops in the order of their start: the first is shown.
  private var sources: [(source: any ProgressSource, began: Int64)] = []
  /// The time of the next drawing.
  private var due: Int64 = 0
  private let isUTF8 = ProgressDisplay.usesUTF8

  /// The time between two drawings.
  private static let interval: Int64 = 100_000_000
  /// Ops that end sooner aren't shown.
  private static let delay: Int64 = 200_000_000
  /// After this time it is drawn again even if only the remaining time has changed.
  private static let refresh: Int64 = 1_000_000_000

  /// Whether there is a terminal that can show it.
  static var isPossible: Bool {
    guard isatty(STDERR_FILENO) != 0, let terminal = getenv("TERM") else { return false }
    return strcmp(terminal, "dumb") != 0 && terminal[0] != 0
  }

  private static var usesUTF8: Bool {
    for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
      guard let value = getenv(name), value[0] != 0 else { continue }
      let text = String(cString: value).lowercased()
      return text.contains("utf-8") || text.contains("utf8")
    }
    return false
  }

  /// Makes the output of scripts remove the line first.
  var outputGuard: LuaOutputGuard {
    LuaOutputGuard(hide: { flowsystem_hide_status() }, wrote: { flowsystem_note_output($0) })
  }

  func progressChanged(_ source: any ProgressSource) {
    let time = LuaVM.monotonicTime
    if let index = sources.firstIndex(where: { $0.source === source }) {
      if source.progress == nil { sources.remove(at: index) }
    } else if source.progress != nil {
      if sources.isEmpty { due = time + Self.delay }
      sources.append((source, time))
    }
    if sources.isEmpty { end() } else if time >= due { draw(time) }
  }

  func loopRests() -> Int64? {
    if sources.isEmpty { return nil }
    let time = LuaVM.monotonicTime
    if time < due { return due - time }
    draw(time)
    return Self.refresh
  }

  /// Removes the line.
  func end() { flowsystem_hide_status() }

  private func draw(_ time: Int64) {
    due = time + Self.interval
    guard let first = sources.first, let progress = first.source.progress else { return }
    let columns = Int(flowsystem_terminal_columns())
    let text = ProgressText(columns: columns > 0 ? columns : 80, isUTF8: isUTF8)
      .text(
        progress, after: Double(time - first.began) / 1e9, others: sources.count - 1)
    text.withUnsafeBytes { bytes in
      _ = flowsystem_show_status(bytes.baseAddress, bytes.count)
    }
  }
}
