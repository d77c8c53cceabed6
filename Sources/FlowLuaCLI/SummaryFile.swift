internal import FlowEngine

/// The summaries of all runs in one file, which is replaced when the script ends: `--summary=json:FILE`.
struct SummaryFile {
  private let file: LongOptions.SummaryFile
  /// What is written at the end: nothing, unless the new file couldn't be made.
  private var content: [UInt8] = []
  /// The new file; nil before the first run has ended, and for what can't be replaced: stdout, a pipe, a folder
  /// that isn't there any more.
  private var replacement: FileReplacement?
  private var problem: SystemError?
  private var hasBegun = false

  init(_ file: LongOptions.SummaryFile) {
    self.file = file
    // As in `RunFileWriter`.
    _ = TemporaryPaths.shared
  }

  /// Adds a part of the summary of a run that has ended.
  mutating func add(_ summary: ByteString) {
    if !hasBegun {
      hasBegun = true
      replacement = file.path == "-" ? nil : try? FileReplacement(of: file.path)
    }
    guard let replacement else {
      content += summary.bytes
      return
    }
    guard problem == nil else { return }
    do throws(SystemError) {
      try replacement.append(summary)
    } catch {
      problem = error
    }
  }

  /// Writes the file; returns a failure, nil for success.
  func write() -> RunFileWriter.Failure? {
    guard let replacement else {
      return RunFileWriter.save(ByteString(content), file.path, "summaries")
    }
    do throws(SystemError) {
      if let problem { throw problem }
      try replacement.commit()
      return nil
    } catch {
      return RunFileWriter.Failure(message: "can't write the summaries: \(error.messageBytes)")
    }
  }
}
