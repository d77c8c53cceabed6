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

extension FlowError: ByteRecord {
  @usableFromInline package static let byteForm = ByteForm(
    {
      (
        kind, message, op, path, suggestion, place, traceback, code, limit, retryAfter, isRetriable,
        isTransient, process, request, others
      ) in
      FlowError(
        kind,
        Details(
          message: message, op: op, path: path, suggestion: suggestion, place: place,
          traceback: traceback, code: code, process: process, request: request, limit: limit,
          isRetriable: isRetriable, isTransient: isTransient, retryAfter: retryAfter, others: others
        ))
    },
    { (error: FlowError) in
      let details = error.details
      return (
        error.kind, details.message, details.op, details.path, details.suggestion, details.place,
        details.traceback, details.code, details.limit, details.retryAfter, details.isRetriable,
        details.isTransient, details.process, details.request,
        details.others.map { $0.with { $0.others = [] } }
      )
    })

  @usableFromInline package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> FlowError
  {
    // Others have none themselves, and causes are within each other to a limit.
    try reader.nested(atMost: 20) { (reader) throws(MalformedBytes) in
      try byteForm.read(from: &reader)
    }
  }
}

extension FlowError.Kind: ByteCodable {
  @usableFromInline package func write(to writer: inout ByteWriter) { number.write(to: &writer) }

  @usableFromInline package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> FlowError.Kind
  {
    guard let kind = FlowError.Kind(number: try reader.byte()) else { throw MalformedBytes() }
    return kind
  }
}

extension ProcessResult: ByteRecord {
  @usableFromInline package static let byteForm = ByteForm(
    { (status: Int64, stdout, stderr, end) throws(MalformedBytes) in
      guard let status = Int32(exactly: status) else { throw MalformedBytes() }
      return ProcessResult(rawStatus: status, stdout: stdout, stderr: stderr, stderrEnd: end)
    },
    { (result: ProcessResult) in
      (
        Int64(result.rawStatus), result.hasStdout ? result.stdout : nil,
        result.hasStderr ? result.stderr : nil, result.stderrEnd
      )
    })
}

extension RequestFailure: ByteUnion {
  @usableFromInline package static let byteCases: [ByteCase<RequestFailure>] = [
    ByteCase(0, { .connection(phase: $0, sent: $1) }) { failure in
      if case .connection(let phase, let sent) = failure { (phase, sent) } else { nil }
    },
    ByteCase(1, RequestFailure.response) { failure in
      if case .response(let response) = failure { response } else { nil }
    },
  ]
}

extension RequestFailure.Phase: ByteUnion {
  @usableFromInline package static let byteCases = zip(0..., allCases).map { tag, phase in
    ByteCase<Self>(tag, { phase }) { $0 == phase ? () : nil }
  }
}

extension RequestFailure.Response: ByteRecord {
  @usableFromInline package static let byteForm = ByteForm(
    { (status, headers: [NamedForm<ByteString>], body) in
      RequestFailure.Response(
        status: status, headers: headers.map { ($0.name, $0.value) }, body: body)
    },
    { (response: RequestFailure.Response) in
      (response.status, response.headers.map { NamedForm($0.name, $0.value) }, response.body)
    })
}

/// To the nanosecond.
extension Duration: ByteCodable {
  @usableFromInline package func write(to writer: inout ByteWriter) {
    writer.add(fixed: clampedNanoseconds)
  }
  @usableFromInline package static func read(from reader: inout ByteReader) throws(MalformedBytes)
    -> Duration
  {
    .nanoseconds(try reader.fixed())
  }
}
