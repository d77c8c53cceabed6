/// Records measurements of runs: the part of a program's metrics that `RunMetricsSink` needs.
///
/// Its methods have the shapes of `Counter`, `Timer` and `Gauge` of swift-metrics, so that an adapter passes
/// them on. They are called on the loop's thread; metrics of several loops have to be safe for that.
public protocol RunMetrics {
  /// Increases a counter.
  ///
  /// - Parameters:
  ///   - label: Its name.
  ///   - dimensions: Names and values that tell its series apart.
  ///   - amount: A positive number.
  func increment(counter label: String, dimensions: [(String, String)], by amount: Int64)

  /// Adds a duration to a timer.
  ///
  /// - Parameters:
  ///   - label: Its name.
  ///   - dimensions: Names and values that tell its series apart.
  ///   - nanoseconds: The duration.
  func record(timer label: String, dimensions: [(String, String)], nanoseconds: Int64)

  /// Sets a gauge.
  ///
  /// - Parameters:
  ///   - label: Its name.
  ///   - dimensions: Names and values that tell its series apart.
  ///   - value: Its value from now on.
  func record(gauge label: String, dimensions: [(String, String)], value: Double)
}
