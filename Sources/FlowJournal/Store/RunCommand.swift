internal import FlowEngine

/// Something to write about a run.
enum RunCommand: Sendable {
  case record(OpRecord)
  case file(KnownFile)
  case end(finished: Bool)
}

/// The run that a writer writes about.
struct RunTarget: Sendable {
  let folder: ByteString
  let key: [UInt8]
  let run: ByteString
  let number: Int64
  let epoch: Int64
}
