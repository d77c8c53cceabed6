/// A function to call when a flow starts or has finished. Called on the loop's thread.
package protocol RunCallback: CodeHolder {
  /// Does its work. `.suspended` promises a later `completion.finish()`.
  func call(_ run: Run, completion: CallbackCompletion) -> CallState
  /// Stops a suspended callback because of `error`; the callback must finish sooner or later.
  ///
  /// A callback after the end of a flow is stopped only when the grace is over: `completion.isCut`
  /// is then true, and it must finish at once.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
  /// Where its code begins, such as `deploy.lua:12`; nil when that isn't known.
  var place: ByteString? { get }
}

extension RunCallback {
  /// nil: the place isn't known.
  package var place: ByteString? { nil }

  /// Stops waiting for the callback.
  package func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    completion.finish(error)
  }
}

/// A synchronous Swift closure as a callback.
final class ClosureCallback: RunCallback {
  private let body: (Run) throws -> Void

  init(_ body: @escaping (Run) throws -> Void) {
    self.body = body
  }

  func call(_ run: Run, completion: CallbackCompletion) -> CallState {
    do {
      try body(run)
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}
