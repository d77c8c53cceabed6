// Works of the log and places in a trace as bytes, for other processes.

extension ByteWriter {
  /// Writes a work.
  package mutating func add(_ work: LoggedWork) {
    add(byte: work.kind.rawValue)
    add(UInt64(work.key))
    add(work.text)
    add(fixed: work.duration)
  }

  /// Writes a place in a trace.
  package mutating func add(_ origin: SpanOrigin) {
    let trace = origin.trace
    for number in [trace.high, trace.low, trace.parent] { add(fixed: Int64(bitPattern: number)) }
    add(trace.isSampled)
    add(optional: trace.stateBytes) { $0.add($1) }
    add(optional: origin.place) { writer, place in
      switch place {
      case .execution(let span):
        writer.add(true)
        writer.add(fixed: Int64(bitPattern: span))
      case .items(let run, let scope):
        writer.add(false)
        writer.add(run)
        writer.add(UInt64(scope))
      }
    }
  }
}

extension ByteReader {
  /// Reads a work.
  package mutating func work() throws(MalformedBytes) -> LoggedWork {
    guard let kind = LoggedWork.Kind(rawValue: try byte()),
      let key = UInt32(exactly: try number())
    else { throw MalformedBytes() }
    return LoggedWork(kind, key: key, text: try text(), duration: try fixed())
  }

  /// Reads a place in a trace.
  package mutating func spanOrigin() throws(MalformedBytes) -> SpanOrigin {
    var numbers: [UInt64] = []
    for _ in 0..<3 { numbers.append(UInt64(bitPattern: try fixed())) }
    let isSampled = try flag()
    let state = try optional { (r) throws(MalformedBytes) in try r.text() }
    let trace = TraceContext(
      high: numbers[0], low: numbers[1], parent: numbers[2], isSampled: isSampled, state: state)
    let place = try optional { (r) throws(MalformedBytes) -> SpanOrigin.Place in
      if try r.flag() { return .execution(UInt64(bitPattern: try r.fixed())) }
      let run = try r.text()
      guard let scope = UInt32(exactly: try r.number()) else { throw MalformedBytes() }
      return .items(run: run, scope: scope)
    }
    return SpanOrigin(trace, place: place)
  }
}
