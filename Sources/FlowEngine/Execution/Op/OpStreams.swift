/// The reading end of a stream, or of a list in its place, for the code of an op.
package final class StreamInput {
  private let reader: ItemReader?
  private let list: ListSource?
  private var position = 0
  private let name: ByteString
  private let op: ByteString
  private let type: FlowValueType
  private let isSecret: Bool
  private let end: StreamEnd
  /// Whether code waits for an item.
  package private(set) var isAwaited = false

  fileprivate init?(
    _ value: FlowValue, _ name: ByteString, of op: ByteString, _ type: FlowValueType,
    isSecret: Bool, _ end: StreamEnd
  ) {
    guard case .opaque(let opaque) = value else { return nil }
    reader = opaque as? ItemReader
    list = reader == nil ? ListSource(value, isSecret: isSecret) : nil
    if reader == nil, list == nil { return nil }
    self.name = name
    self.op = op
    self.type = type
    self.isSecret = isSecret
    self.end = end
  }

  /// Whether the items come from a stream, so that they can be read once only.
  package var isOfStream: Bool { reader != nil }

  /// Whether `next` has a result.
  package var hasNext: Bool { reader?.hasNext ?? true }

  /// The next item; nil at the end.
  package func next() throws(FlowError) -> FlowValue? {
    guard let reader else {
      guard let list, position < list.count else { return nil }
      position += 1
      return list.item(at: position - 1)
    }
    switch reader.next() {
    case .item(let item):
      if let wanted = type.mismatch(item.plain) {
        throw .mismatchedInput("\(name)[\(reader.position)]", item, wanted: wanted)
      }
      return isSecret ? .secret(item) : item
    case .failed(let error): throw error
    case .closed: throw .usage("[\(op)] has ended: it reads no more items of <\(name)>")
    case .end, .pending: return nil
    }
  }

  /// Calls a function once when there is an item, or none follows.
  ///
  /// - Returns: Ends the wait.
  package func whenNext(_ then: @escaping () -> Void) -> () -> Void {
    isAwaited = true
    let wait = StreamWait(end) { [weak self] in
      self?.isAwaited = false
      then()
    }
    reader?.onChange = { [weak reader] in
      reader?.onChange = nil
      wait.isDue()
    }
    wait.begin()
    return { [self] in
      isAwaited = false
      reader?.onChange = nil
      wait.abandon()
    }
  }
}

extension OpContext {
  /// The stream that the op has written under a key; nil before the first item.
  package func knownOutput(_ key: DataKey) -> StreamOutput? {
    guard let outputs = resources?.outputs, !isCleaningUp else { return nil }
    for each in outputs where each.key == key { return each.output }
    return nil
  }

  /// The stream that the op writes under a key; fails if it writes none there, or isn't a step of a graph.
  package func output(_ key: DataKey) -> Result<StreamOutput, FlowError> {
    if let known = knownOutput(key) { return .success(known) }
    let name = bucket.keys.name(of: key)
    guard let type = op.gives.first(where: { $0.name == name })?.type.streamed else {
      let known = op.gives.filter(\.type.isStream).map { "<\($0.name)>" as ByteString }
      let why: ByteString =
        known.isEmpty
        ? "it gives no stream" : "it gives as streams only \(known.joined(separator: ", "))"
      return .failure(.usage("<\(name)> isn't a stream that [\(op.name)] gives: \(why)"))
    }
    guard let execution, isOpen, !isCleaningUp else {
      return .failure(.usage("[\(op.name)] has ended"))
    }
    guard let (graph, step, outside) = execution.stepOfGraph(key),
      let stream = graph.stream(outside, of: step)
    else {
      return .failure(
        .usage(
          "<\(name)> is a stream, which only an op of a flow.graph writes: ops of flows never overlap"
        ))
    }
    let output = StreamOutput(
      stream, type,
      StreamEnd(
        key: key, isWritten: true, waits: makeResources().streamWaits,
        place: graph.isLimited ? (graph, step) : nil))
    makeResources().outputs.append((key, output))
    notePassedItems()
    return .success(output)
  }

  /// Gives a value under a key for an op that another one stands for: of a stream that it writes, which is a list then, each
  /// item.
  package func give(_ key: DataKey, _ value: FlowValue) {
    let name = bucket.keys.name(of: key)
    guard op.gives.contains(where: { $0.name == name && $0.type.isStream }),
      case .success(let output) = self.output(key)
    else { return set(key, value) }
    guard let list = ListSource(value.plain, isSecret: value.isSecret) else {
      return fail(.mismatchedOutput(name, value, wanted: "list of the stream's items"))
    }
    for index in 0..<list.count {
      let item = list.item(at: index)
      if let wanted = output.mismatch(item) {
        return fail(.mismatchedOutput("\(name)[\(output.next)]", item, wanted: wanted))
      }
      // The list is there as a whole: no reader needs to hold it back.
      output.write(item)
    }
  }

  /// The items under a key that the op declares as a stream; nil if it isn't one, or has no value.
  package func input(_ key: DataKey, _ value: FlowValue) -> StreamInput? {
    guard op.declarations.hasStreams else { return nil }
    let name = bucket.keys.name(of: key)
    guard let type = op.needs.first(where: { $0.name == name })?.type.streamed else { return nil }
    let place = execution?.stepOfGraph(key).flatMap {
      $0.graph.isLimited ? ($0.graph, $0.step) : nil
    }
    return StreamInput(
      value, name, of: op.name, type, isSecret: bucket.isSecret(key),
      StreamEnd(key: key, isWritten: false, waits: makeResources().streamWaits, place: place))
  }

  /// Notes that the op has passed or taken items: another attempt would pass them twice, or miss them.
  package func notePassedItems() {
    var execution = execution
    while let next = execution {
      next.context.makeResources().hasPassedItems = true
      guard next.group is InnerExecution else { return }
      execution = next.group?.parent
    }
  }
}

extension Execution {
  /// The error of an op whose code waits for a stream for ever; nil if it waits for something else.
  var streamStall: FlowError? {
    guard let end = context.resources?.streamWaits.last?.end,
      let (graph, step, key) = stepOfGraph(end.key),
      let other = graph.otherSide(of: key, end.isWritten, step)
    else { return nil }
    let name = context.displayName
    return FlowError(.stalled, "stalled: [\(name)] waits for \(other)", op: name)
  }

  /// The graph whose step executes the op, with the key's name there; the op may be the one that the step's op executes in
  /// its place.
  func stepOfGraph(
    _ key: DataKey
  ) -> (graph: ParallelExecution, step: Int, key: DataKey)? {
    var (execution, key) = (self, key)
    while execution.frames.isEmpty, let group = execution.group {
      if let graph = group as? ParallelExecution {
        return graph.separatesData ? (graph, graph.step(of: execution), key) : nil
      }
      guard group is InnerExecution else { return nil }
      execution = group.parent
      if let body = execution.context.op.body as? any RenamingBody {
        key = loop.keys.intern(body.nameOutside(loop.keys.name(of: key)))
      }
    }
    return nil
  }
}
