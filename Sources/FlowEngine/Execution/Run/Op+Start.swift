extension Op {
  /// Starts the op alone and executes it until its first wait, or its 1,000th op of Swift: then
  /// jobs of the loop run before it continues.
  ///
  /// - Parameters:
  ///   - loop: The loop that the op, its data and the run belong to, by default the current one; called on its
  ///     thread.
  ///   - data: The initial data, whose keys may have any bytes; it replaces a flow's own value of the same key.
  ///   - name: The name of the run; by default the op's.
  ///   - sinks: Sinks that get each event, besides those of the loop.
  ///   - trace: The distributed trace that its ops continue; nil for the loop's.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  /// - Returns: The run, which may have settled already.
  @discardableResult @_disfavoredOverload
  package func start(
    on loop: EventLoop = .current, data: [(ByteString, FlowValue)], name: ByteString? = nil,
    sinks: [any EventSink] = [], trace: TraceContext? = nil, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Run {
    start(
      on: loop, data: data, name: name, sinks: sinks, trace: trace, owner: nil, file: file,
      line: line)
  }

  /// Starts it for an op and, before anything is executed, calls `adopt`, which can attach the run
  /// to another owner.
  package func start(
    on loop: EventLoop, data: [(ByteString, FlowValue)], name: ByteString? = nil,
    sinks: [any EventSink] = [], trace: TraceContext? = nil, owner: OpContext?,
    adopt: ((Run) -> Void)? = nil, file: StaticString = #fileID, line: UInt = #line
  ) -> Run {
    if loop.isShutDown {
      misuse("an op was started on an event loop that was shut down", file: file, line: line)
    }
    let run = Run(
      self, on: loop, name: name ?? self.nameBytes, sinks: loop.engine.eventSinks + sinks)
    if let trace { run.spanOrigin = SpanOrigin(trace) }
    run.begin(data, owner: owner, adopt: adopt)
    return run
  }
}
