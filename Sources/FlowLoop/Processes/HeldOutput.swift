/// Counts the bytes that the outputs of programs hold; see `EventLoop.outputMeter`.
package protocol OutputMeter: AnyObject {
  /// Adds bytes, on the loop's thread.
  ///
  /// - Returns: The limit if they exceed it; nil otherwise.
  func add(output bytes: Int) -> Int?
  /// Removes bytes, on any thread.
  func release(output bytes: Int)
}

/// The share of a collected output in what a meter counts, as long as the output or a result with it exists.
// Unchecked: the bytes are only added on the loop's thread, before a result has it.
final class HeldOutput: @unchecked Sendable {
  private let meter: any OutputMeter
  private var count = 0

  init(_ meter: any OutputMeter) {
    self.meter = meter
  }

  deinit { meter.release(output: count) }

  /// Adds bytes; returns the limit if they exceed it.
  func add(_ bytes: Int) -> Int? {
    count += bytes
    return meter.add(output: bytes)
  }
}

/// The output of a program doesn't fit into the memory that there is for it.
package struct ProcessOutputLimit: Error {
  /// The limit in bytes.
  package let limit: Int
}
