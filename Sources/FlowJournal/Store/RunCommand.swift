internal import FlowEngine

/// Something to write about a run.
enum RunCommand: Sendable {
  case record(OpRecord)
  case file(KnownFile)
  case code(KnownCode)
  case end(KeptRunEnd)
}

/// How a process ends its execution of a run.
package enum KeptRunEnd: Sendable {
  /// The script has done all it had to do.
  case finished
  case failed
  /// By a signal, or because it waits for messages.
  case stopped
}

/// The run that a writer writes about.
struct RunTarget: Sendable {
  let folder: ByteString
  let key: [UInt8]
  let run: ByteString
  let number: Int64
  let epoch: Int64
  /// Where the run is kept besides the store; nil: nowhere.
  var mirror: MirrorTarget?
}

/// Where a run is kept besides the store, and how far that is.
struct MirrorTarget: Sendable {
  let mirror: RunMirror
  /// The number of the run's first message.
  let first: UInt64
  /// The number of its last message.
  let last: UInt64
}
