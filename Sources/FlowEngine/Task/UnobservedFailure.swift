/// A failure that nobody observed; it holds nothing of the run but its name and error.
public struct UnobservedFailure {
  /// The task's id.
  public let id: UInt64
  /// What the task is called in reports.
  public let name: ByteString
  /// Why it failed.
  public let error: FlowError
  let order: UInt64
}

/// The failures that nobody has observed, of a loop and those within it: their tasks' ids are unique
/// among all of them. Confined to the loop's thread.
final class FailureReports {
  private var unobserved: [UInt64: UnobservedFailure] = [:]
  /// Those that observing doesn't lift.
  private var late: [UnobservedFailure] = []
  private var order: UInt64 = 0

  var inOrder: [UnobservedFailure] {
    (Array(unobserved.values) + late).sorted { $0.order < $1.order }
  }

  func add(_ error: FlowError, of task: AnyFlowTask) {
    order += 1
    unobserved[task.id] = UnobservedFailure(
      id: task.id, name: task.title, error: error, order: order)
  }

  /// Adds one that observing doesn't lift.
  func add(_ error: FlowError, name: ByteString, id: UInt64 = 0) {
    order += 1
    late.append(UnobservedFailure(id: id, name: name, error: error, order: order))
  }

  /// Gives each of them once.
  func takeAll() -> [UnobservedFailure] {
    if unobserved.isEmpty && late.isEmpty { return [] }
    defer {
      unobserved = [:]
      late = []
    }
    return inOrder
  }

  /// Says that somebody has looked at a failed task.
  func remove(_ id: UInt64) { unobserved[id] = nil }
}
