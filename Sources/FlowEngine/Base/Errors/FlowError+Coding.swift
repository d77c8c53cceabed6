// Errors of encoding and decoding as errors of ops.

extension FlowError {
  /// The path and the problem of an error of encoding or decoding, `items[2].n: integer expected,
  /// got string`; nil for any other error.
  static func text(ofCoding error: any Error) -> ByteString? {
    guard let context = codingContext(of: error) else { return nil }
    let path = CodingPath.text(of: context.path)
    let text = ByteString(context.text)
    if path.isEmpty { return text }
    return
      "\(ByteString(path.bytes.dropFirst(path.bytes.first == UInt8(ascii: ".") ? 1 : 0))): \(text)"
  }

  private static func codingContext(
    of error: any Error
  ) -> (path: [any CodingKey], text: String, wanted: ByteString?)? {
    if case .invalidValue(_, let context)? = error as? EncodingError {
      return (context.codingPath, context.debugDescription, nil)
    }
    switch error as? DecodingError {
    case .typeMismatch(_, let context), .valueNotFound(_, let context),
      .dataCorrupted(let context):
      let mismatch = context.underlyingError as? ValueMismatch
      return (context.codingPath, context.debugDescription, mismatch?.wanted)
    case .keyNotFound(let key, let context):
      return (context.codingPath + [key], context.debugDescription, nil)
    default: return nil
    }
  }

  /// A value under a key can't be decoded. The message shows no part of a secret.
  fileprivate static func undecodable(
    _ name: ByteString, _ value: FlowValue, _ error: any Error, hiding secrets: SecretTexts?
  ) -> FlowError {
    guard let (path, text, wanted) = codingContext(of: error) else {
      return from(error)
    }
    let place = name + CodingPath.text(of: path)
    guard let wanted else {
      return FlowError(
        .mismatchedInput, "<\(place)> in data bucket: \(ByteString(text))", underlying: error)
    }
    let part = value.part(at: path)
    return mismatchedInput(
      place, value.isSecret ? .secret(part) : part, wanted: wanted, hiding: secrets
    ).with { $0.underlying = error }
  }

  /// A value for a key can't be encoded.
  package static func unencodable(_ name: ByteString, _ error: any Error) -> FlowError {
    guard let (path, text, _) = codingContext(of: error) else { return from(error) }
    return FlowError(
      .mismatchedOutput,
      "<\(name + CodingPath.text(of: path))> can't be stored: \(ByteString(text))",
      underlying: error)
  }
}

extension FlowValue {
  /// The part of a value at the path of an error.
  fileprivate func part(at path: [any CodingKey]) -> FlowValue {
    path.reduce(plain) { value, key in
      if key is IndexKey {
        if case .bytes(let bytes) = value, let index = key.intValue,
          bytes.bytes.indices.contains(index)
        {
          return .integer(Int64(bytes.bytes[index]))
        }
        return key.intValue.flatMap { value[$0] } ?? .null
      }
      if let key = key as? NumberKey, let part = value[number: key.number] { return part }
      return value[ByteString(key.stringValue)] ?? .null
    }
  }
}

extension DataBucket {
  /// The error for a value that can't be decoded.
  package func mismatchedInput(_ key: DataKey, _ value: FlowValue, _ error: any Error) -> FlowError
  {
    .undecodable(keys.name(of: key), shown(value, of: key), error, hiding: keys.secrets)
  }
}

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
      add(list: response.headers) { writer, header in
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
