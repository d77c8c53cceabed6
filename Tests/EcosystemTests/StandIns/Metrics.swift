// A stand-in of swift-metrics' module `Metrics`: the same signatures, for the adapters of the tests and of the
// documentation. The package itself isn't a dependency.
import Synchronization

/// A number that only increases.
public final class Counter: Sendable {
  private let series: String

  public init(label: String, dimensions: [(String, String)] = []) {
    series = MeasuredValues.series(label, dimensions)
  }

  public func increment<Amount: BinaryInteger>(by amount: Amount) {
    MeasuredValues.current?.add(Double(amount), to: series)
  }
}

/// Durations.
public final class Timer: Sendable {
  private let series: String

  public init(label: String, dimensions: [(String, String)] = []) {
    series = MeasuredValues.series(label, dimensions)
  }

  public func recordNanoseconds(_ duration: Int64) {
    MeasuredValues.current?.add(Double(duration) / 1e9, to: series)
  }
}

/// A number that increases and decreases.
public final class Gauge: Sendable {
  private let series: String

  public init(label: String, dimensions: [(String, String)] = []) {
    series = MeasuredValues.series(label, dimensions)
  }

  public func record<Value: BinaryFloatingPoint>(_ value: Value) {
    MeasuredValues.current?.set(Double(value), of: series)
  }
}

/// The values that a test has measured, by series: the stand-in of a `MetricsFactory`.
final class MeasuredValues: Sendable {
  /// Not one for the process, as tests run at the same time.
  @TaskLocal static var current: MeasuredValues?

  private let values = Mutex<[String: Double]>([:])

  static func series(_ label: String, _ dimensions: [(String, String)]) -> String {
    ([label] + dimensions.map { "\($0)=\($1)" }).joined(separator: " ")
  }

  func add(_ value: Double, to series: String) {
    values.withLock { $0[series, default: 0] += value }
  }

  func set(_ value: Double, of series: String) { values.withLock { $0[series] = value } }

  /// `label dimension=value: number`, sorted.
  var lines: [String] { values.withLock { $0.map { "\($0): \($1)" }.sorted() } }
}
