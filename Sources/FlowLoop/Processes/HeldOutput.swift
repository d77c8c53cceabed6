/// Counts the bytes that the outputs of programs hold; see `EventLoop.outputMeter`.
package protocol OutputMeter: AnyObject {
  /// Adds bytes, on the loop's thread.
  ///
  /// - Returns: The limit if they exceed it; nil otherwise.
  func add(output bytes: Int) -> Int?
  /// Removes bytes, on any thread.
  func release(output bytes: Int)
}

/// The share of an output in what a meter counts, as long as the output, its lines, or a result with it exists.
// Unchecked: the number is only changed on the loop's thread, before a result has it.
final class HeldOutput: @unchecked Sendable {
  private let meter: any OutputMeter
  private var count = 0

  init(_ meter: any OutputMeter) {
    self.meter = meter
  }

  deinit { meter.release(output: count) }

  /// Changes the number of bytes; returns the limit if there are more now, and they exceed it.
  func set(_ bytes: Int) -> Int? {
    let growth = bytes - count
    count = bytes
    if growth > 0 { return meter.add(output: growth) }
    meter.release(output: -growth)
    return nil
  }
}

/// The output of a program doesn't fit into the memory that there is for it.
package struct ProcessOutputLimit: Error {
  /// The limit in bytes.
  package let limit: Int
}
