extension Op {
  /// Starts the op alone, with data of values of any types; see the other `start`.
  ///
  /// - Parameters:
  ///   - loop: The loop that the op, its data and the run belong to, by default the current one; called on its
  ///     thread.
  ///   - data: The initial data; it replaces a flow's own value of the same key.
  ///   - name: The name of the run; by default the op's.
  ///   - sinks: Sinks that get each event, besides those of the loop.
  ///   - trace: The distributed trace that its ops continue; nil for the loop's.
  /// - Returns: The run, which may have settled already.
  @discardableResult @_disfavoredOverload
  public func start(
    on loop: EventLoop = .current, data: InitialData, name: ByteString? = nil,
    sinks: [any EventSink] = [], trace: TraceContext? = nil, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Run {
    start(
      on: loop, data: data.entries, name: name, sinks: sinks, trace: trace, file: file, line: line)
  }
}

extension OpContext {
  /// Starts another op from this one, with data of values of any types; see the other `start`.
  @discardableResult @_disfavoredOverload
  public func start(_ op: Op, data: InitialData, name: ByteString? = nil) -> Run {
    start(op, data: data.entries, name: name)
  }
}

extension Flow {
  /// Adds initial data; see `data(_:)` with a literal.
  @discardableResult @_disfavoredOverload
  public func data(_ data: InitialData) -> Flow {
    data.entries.reduce(self) { flow, entry in flow.data(entry.name, entry.value) }
  }

  /// Adds initial data of anything `Encodable`; a later value replaces an earlier one under the same
  /// key.
  ///
  /// - Throws: A `FlowError` with the path of the part that has no form in a bucket.
  @discardableResult @_disfavoredOverload
  public func data(_ name: ByteString, _ content: some Encodable) throws(FlowError) -> Flow {
    let value: FlowValue
    do { value = try FlowValue(encoding: content) } catch { throw .unencodable(name, error) }
    return data(name, value)
  }
}
