/// An unobserved failure; it keeps only the run's name and error.
public struct UnobservedFailure {
  /// The task's id.
  public let id: UInt64
  /// The task's name in reports.
  public var name: String { nameBytes.description }
  /// The bytes of `name`.
  package let nameBytes: ByteString
  /// Why it failed.
  public let error: FlowError
  let order: UInt64
}

/// The unobserved failures of a loop and of the loops within it: their tasks' ids are unique among
/// all of them. Confined to the loop's thread.
final class FailureReports {
  private var unobserved: [UInt64: UnobservedFailure] = [:]
  /// Failures that observing the task doesn't remove.
  private var late: [UnobservedFailure] = []
  private var order: UInt64 = 0

  var inOrder: [UnobservedFailure] {
    (Array(unobserved.values) + late).sorted { $0.order < $1.order }
  }

  func add(_ error: FlowError, of task: AnyFlowTask) {
    order += 1
    unobserved[task.id] = UnobservedFailure(
      id: task.id, nameBytes: task.title, error: error, order: order)
  }

  /// Adds a failure that observing the task doesn't remove.
  func add(_ error: FlowError, name: ByteString, id: UInt64 = 0) {
    order += 1
    late.append(UnobservedFailure(id: id, nameBytes: name, error: error, order: order))
  }

  /// Returns the failures and removes them.
  func takeAll() -> [UnobservedFailure] {
    if unobserved.isEmpty && late.isEmpty { return [] }
    defer {
      unobserved = [:]
      late = []
    }
    return inOrder
  }

  /// Removes the failure of a task that has been observed.
  func remove(_ id: UInt64) { unobserved[id] = nil }
}
