internal import FlowEngine

/// The summaries of all runs in one file, which is written when the script ends: `--summary=json:FILE`.
struct SummaryFile {
  private let file: LongOptions.SummaryFile
  private var content: [UInt8] = []

  init(_ file: LongOptions.SummaryFile) {
    self.file = file
    // As in `RunFileWriter`.
    _ = TemporaryPaths.shared
  }

  /// Adds a run that has ended.
  mutating func add(_ summary: ByteString) { content += summary.bytes }

  /// Writes the file; returns a failure, nil for success.
  func write() -> RunFileWriter.Failure? {
    RunFileWriter.save(ByteString(content), file.path, "summaries")
  }
}
