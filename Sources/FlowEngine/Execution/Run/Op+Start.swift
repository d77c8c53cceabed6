extension Op {
  /// Starts it for an op and, before anything is executed, calls `adopt`, which can attach the run
  /// to another owner.
  package func start(
    on loop: FlowEventLoop, data: [(ByteString, FlowValue)], name: ByteString? = nil,
    sinks: [any EventSink] = [], trace: TraceContext? = nil, owner: OpContext?,
    adopt: ((Run) -> Void)? = nil, file: StaticString = #fileID, line: UInt = #line
  ) -> Run {
    if loop.isShutDown {
      misuse("an op was started on an event loop that was shut down", file: file, line: line)
    }
    let run = Run(
      self, on: loop, name: name ?? self.name, sinks: loop.engine.eventSinks + sinks)
    if let trace { run.spanOrigin = SpanOrigin(trace) }
    // The code of an op in Swift may have set further values.
    let isOfTask = owner.map { $0.state is LoopTask } ?? true
    run.taskContext = isOfTask ? TaskContext.current() : owner?.run.taskContext
    run.begin(data, owner: owner, adopt: adopt)
    return run
  }
}

extension OpConvertible {
  /// Starts the op alone and executes it until its first wait, or its 1,000th op of Swift: then
  /// jobs of the loop run before it continues.
  ///
  /// ```swift
  /// let run = op.start(on: loop, data: ["name": "Ada"])
  /// let data = try await run.value
  /// ```
  ///
  /// - Parameters:
  ///   - loop: The loop that the op, its data and the run belong to, by default the current one; called on its
  ///     thread.
  ///   - data: The initial data; it replaces a flow's own value of the same key.
  ///   - name: The name of the run; by default the op's.
  ///   - sinks: Sinks that get each event, besides those of the loop.
  ///   - trace: The distributed trace that its ops continue; nil for the loop's.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  /// - Returns: The run, which may have settled already.
  @discardableResult
  public func start(
    on loop: FlowEventLoop = .current, data: InitialData = [:], name: (any FlowText)? = nil,
    sinks: [any EventSink] = [], trace: TraceContext? = nil, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Run {
    makeOp().start(
      on: loop, data: data.entries, name: name?.byteString, sinks: sinks, trace: trace, owner: nil,
      adopt: loop.adoptsRun, file: file, line: line)
  }
}

extension OpContext {
  /// Starts another op from this one and runs it until its first wait.
  ///
  /// It has data and a log of its own; this op's run logs its start and finish. When this op fails
  /// or is stopped, it ends with this op; otherwise it ends with this op's run.
  @discardableResult
  public func start(
    _ op: some OpConvertible, data: InitialData = [:], name: (any FlowText)? = nil
  ) -> Run {
    op.makeOp().start(on: loop, data: data.entries, name: name?.byteString, owner: self)
  }
}

extension Flow {
  /// Adds initial data. Values passed when a run starts take precedence.
  ///
  /// Tables, including nested ones, are copied for each run, so that a run's changes don't reach
  /// other runs.
  ///
  /// ```swift
  /// let run = makeUploadFlow().data(["images": ["cat.png", "dog.png"]]).start(on: loop)
  /// ```
  @discardableResult
  public func data(_ data: InitialData) -> Flow {
    for (name, value) in data.entries { self.data(name, value) }
    return self
  }

  /// Adds initial data of anything `Encodable`; a later value replaces an earlier one under the same
  /// key.
  ///
  /// - Throws: A `FlowError` with the path of the part that has no form in a bucket.
  @discardableResult @_disfavoredOverload
  public func data(_ name: some FlowText, _ content: some Encodable) throws(FlowError) -> Flow {
    let value: FlowValue
    do { value = try FlowValue(encoding: content) } catch {
      throw .unencodable(name.byteString, error)
    }
    return data(name, value)
  }
}

/// An op about which the keeper of its run can decide when something has been read.
final class UndecidedOp {
  let work: KeptWork

  init(_ work: KeptWork, after reading: any KeptReading) {
    work.reading = reading
    self.work = work
  }
}
