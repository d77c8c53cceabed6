package import FlowEngine

/// The facts that a list shows of a kept run.
package struct KeptRunSummary: Sendable {
  package enum State: Sendable {
    /// A process is executing it.
    case live(pid: Int64, host: ByteString)
    /// Its process was killed or stopped, or it waits for messages.
    case unfinished
    /// Its process has ended with a failure.
    case failed
    case finished
  }

  /// Short, such as `r7k2`.
  package var id: ByteString
  /// The path of the script.
  package var script: ByteString
  /// The arguments of the script.
  package var words: [ByteString]
  package var state: State
  /// Seconds since 1970.
  package var began: Double
  /// When the last process that executed it ended, or last gave a sign of life.
  package var changed: Double
  /// How many processes have executed it.
  package var epoch: Int64
  /// How many records of each state it has.
  package var started: Int
  package var finished: Int
  package var failed: Int
  package var undone = 0
  package var stopped = 0
}
