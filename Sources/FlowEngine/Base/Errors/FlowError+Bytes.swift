// Errors as bytes, for other processes. They lack the value that represents an error on its loop, and the error that
// Swift code threw.

extension ByteWriter {
  /// Writes an error.
  package mutating func add(_ error: FlowError) {
    add(byte: error.kind.rawValue)
    let details = error.details
    add(details.message)
    for text in [details.op, details.path, details.suggestion, details.place, details.traceback] {
      add(optional: text) { $0.add($1) }
    }
    add(optional: details.code) { $0.add(fixed: $1) }
    add(optional: details.limit) { $0.add($1) }
    add(optional: details.retryAfter) { $0.add($1) }
    add(optional: details.isRetriable) { $0.add($1) }
    add(optional: details.isTransient) { $0.add($1) }
    add(optional: details.process) { $0.add($1) }
    add(optional: details.request) { $0.add($1) }
  }

  /// Writes a time, to the nanosecond.
  package mutating func add(_ duration: Duration) { add(fixed: duration.clampedNanoseconds) }

  private mutating func add(_ process: ProcessResult) {
    add(fixed: Int64(process.rawStatus))
    add(optional: process.hasStdout ? process.stdout : nil) { $0.add($1) }
    add(optional: process.hasStderr ? process.stderr : nil) { $0.add($1) }
    add(process.stderrEnd)
  }

  private mutating func add(_ failure: RequestFailure) {
    switch failure {
    case .response(let response):
      add(true)
      add(count: response.status)
      add(list: response.headersByBytes) { writer, header in
        writer.add(header.name)
        writer.add(header.value)
      }
      add(response.body)
    case .connection(let phase, let sent):
      add(false)
      add(ByteString(phase.rawValue))
      add(sent)
    }
  }
}

extension ByteReader {
  /// Reads an error.
  package mutating func error() throws(MalformedBytes) -> FlowError {
    guard let kind = FlowError.Kind(rawValue: try byte()) else { throw MalformedBytes() }
    let message = try text()
    var texts: [ByteString?] = []
    for _ in 0..<5 { texts.append(try optional { (r) throws(MalformedBytes) in try r.text() }) }
    let code = try optional { (r) throws(MalformedBytes) in try r.fixed() }
    let limit = try optional { (r) throws(MalformedBytes) in try r.duration() }
    let retryAfter = try optional { (r) throws(MalformedBytes) in try r.duration() }
    let isRetriable = try optional { (r) throws(MalformedBytes) in try r.flag() }
    let isTransient = try optional { (r) throws(MalformedBytes) in try r.flag() }
    let process = try optional { (r) throws(MalformedBytes) in try r.process() }
    let request = try optional { (r) throws(MalformedBytes) in try r.requestFailure() }
    return FlowError(kind, message).with {
      $0.op = texts[0]
      $0.path = texts[1]
      $0.suggestion = texts[2]
      $0.place = texts[3]
      $0.traceback = texts[4]
      $0.code = code
      $0.limit = limit
      $0.retryAfter = retryAfter
      $0.isRetriable = isRetriable
      $0.isTransient = isTransient
      $0.process = process
      $0.request = request
    }
  }

  /// Reads a time.
  package mutating func duration() throws(MalformedBytes) -> Duration { .nanoseconds(try fixed()) }

  private mutating func process() throws(MalformedBytes) -> ProcessResult {
    guard let status = Int32(exactly: try fixed()) else { throw MalformedBytes() }
    return ProcessResult(
      rawStatus: status, stdout: try optional { (r) throws(MalformedBytes) in try r.text() },
      stderr: try optional { (r) throws(MalformedBytes) in try r.text() }, stderrEnd: try text())
  }

  private mutating func requestFailure() throws(MalformedBytes) -> RequestFailure {
    guard try flag() else {
      guard let phase = RequestFailure.Phase(rawValue: try text().description) else {
        throw MalformedBytes()
      }
      return .connection(phase: phase, sent: try flag())
    }
    let status = try integer()
    let headers = try list { (r) throws(MalformedBytes) in
      (name: try r.text(), value: try r.text())
    }
    return .response(
      RequestFailure.Response(status: status, headers: headers, body: try text()))
  }
}
