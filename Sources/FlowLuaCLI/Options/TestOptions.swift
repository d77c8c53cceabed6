internal import FlowEngine

/// The options of `--test`.
final class TestOptions {
  /// Whether `--test` itself is there.
  var isAsked = false
  /// The files and folders.
  var paths: [ByteString] = []
  /// How many files are executed at a time; nil: one for each core.
  var jobs: Int? { didSet { note("--jobs") } }
  var filter: ByteString?
  var failsFast = false
  var repetitions: Int? { didSet { note("--repeat") } }
  var seed: Int64? { didSet { note("--seed") } }
  var junit: ByteString?
  var updates = false
  var covers = false
  /// The seconds that each file may take; nil: the usual ones.
  var time: Double?
  /// The words before and among the paths that the process of each file gets, too.
  var passed: [ByteString] = []
  /// The first option that belongs to `--test`.
  private(set) var companion: ByteString?
  /// The first option that has no effect with `--test`.
  var foreign: ByteString?

  func note(_ option: ByteString) { companion = companion ?? option }
}
