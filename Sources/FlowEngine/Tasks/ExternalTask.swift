/// A task whose work an adapter does, outside of the engine: a request, a query.
///
/// A subclass starts the work, and calls `end` with the outcome. It has to keep itself, because work
/// continues even when nothing observes its task. Confined to its loop's thread.
open class ExternalTask<Success>: FlowTask<Success> {
  /// Makes a pending task.
  package override init(on loop: EventLoop) { super.init(on: loop) }

  /// The name of such tasks in reports; `title` adds the place where this one was made.
  open var kindName: String { "task" }

  package final override var title: ByteString { title(of: ByteString(kindName)) }

  /// Stops the work because of `error`, with which the task then has to end, soon. By default it
  /// ends at once.
  open func stopWork(_ error: FlowError) { end(error: error) }

  package final override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    stopWork(error)
    return nil
  }
}
