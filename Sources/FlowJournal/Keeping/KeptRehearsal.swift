package import FlowEngine

/// The findings of a rehearsal about the ops of runs.
package struct KeptRehearsal {
  /// The decision about an op.
  package enum Verdict {
    /// The values that it had set would be taken over.
    case kept
    /// It would be executed again.
    case again
    /// It would be executed for the first time.
    case new
    /// Somebody would have to say what became of it.
    case question
    /// Nobody knows its items.
    case unknown
  }

  /// A decision about an op.
  package struct Finding {
    package let path: ByteString
    package let verdict: Verdict
    /// The line that says it, as the log has it.
    package let line: ByteString
  }

  /// The decisions, in their order.
  package var findings: [Finding] = []
  /// The first op that would be executed again, whose values from before were taken for what follows it; a path, of an
  /// item without its number.
  package var assumption: ByteString?
  /// The first op whose values aren't known, so that what follows it wasn't rehearsed.
  package var unknown: Finding?
  /// How many ops have been executed all the same.
  package var executed = 0
  /// How many ops weren't executed, because nobody has chosen them.
  package var skipped = 0
  /// Those that were executed and have failed, with their errors.
  package var failures: [(path: ByteString, message: ByteString)] = []

  /// The error of an op that isn't executed.
  package static let refusal = FlowError(.cancelled, "not executed: its run is rehearsed")
  /// The line about an op when no run is continued.
  static let newLine: ByteString = "Executes: no run of the script is unfinished"

  package init() {}

  /// Notes an op of a new run.
  package mutating func noteNew(_ path: ByteString) {
    let finding = Finding(path: path, verdict: .new, line: Self.newLine)
    findings.append(finding)
    if unknown == nil { unknown = finding }
  }
}

extension ByteString {
  /// Where the number of an item begins in the last name of a path: at the space in `publish/UploadOp #7 cat.png`;
  /// nil without one.
  package var itemSign: Int? {
    bytes.withUnsafeBufferPointer { bytes in
      var sign: Int?
      var place = bytes.count - 1
      while place > 0, bytes[place] != UInt8(ascii: "/") {
        if bytes[place] == UInt8(ascii: "#"), bytes[place - 1] == UInt8(ascii: " ") {
          sign = place - 1
        }
        place -= 1
      }
      return sign
    }
  }
}
