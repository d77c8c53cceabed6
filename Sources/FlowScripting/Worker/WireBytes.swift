package import FlowEngine
@_spi(Scripting) package import LuaVM

// Values, errors and jobs of workers as bytes, for workers of other nodes.

/// With the tags of `PlainValueCodec`; a table is its offset in the buffer of its batch.
extension WireValue: ByteCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .null: writer.add(ValueTag.null)
    case .boolean(let flag): writer.add(flag ? ValueTag.truth : .falsehood)
    case .integer(let integer):
      writer.add(ValueTag.integer)
      writer.add(fixed: integer)
    case .number(let number):
      writer.add(ValueTag.number)
      writer.add(number)
    case .bytes(let bytes):
      writer.add(ValueTag.bytes)
      writer.add(bytes)
    case .table(let offset):
      writer.add(ValueTag.known)
      writer.add(count: offset)
    case .secret(let inner):
      writer.add(ValueTag.secret)
      writer.add(inner)
    }
  }

  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> WireValue {
    switch try reader.read(ValueTag.self) {
    case .null: return .null
    case .falsehood: return .boolean(false)
    case .truth: return .boolean(true)
    case .integer: return .integer(try reader.fixed())
    case .number: return .number(try reader.read())
    case .bytes: return .bytes(try reader.text())
    case .known: return .table(try reader.integer())
    case .secret:
      // A secret contains no secret: values that are nested without end must not fill the stack.
      var ahead = reader
      if try ahead.read(ValueTag.self) == .secret { throw MalformedBytes() }
      return .secret(try reader.read())
    case .table, .array, .object, .jsonNull: throw MalformedBytes()
    }
  }
}

extension WireBatch: ByteRecord {
  package static let byteForm = ByteForm(
    { WireBatch(values: ContiguousArray($0), buffer: $1) },
    { (batch: WireBatch) in (Array(batch.values), batch.buffer) })
}

extension EncodedBuffer: ByteCodable {
  package func write(to writer: inout ByteWriter) { withUnsafeBytes { writer.add($0) } }
  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> EncodedBuffer {
    EncodedBuffer(Array(try reader.part()))
  }
}

extension WireError: ByteCodable {
  private static let byteForm = ByteForm(
    { (plain, values, fields: [NamedForm<WireValue>], cause) in
      WireError(
        plain: plain, values: values, fields: fields.map { ($0.name, $0.value) }, cause: cause)
    },
    { (error: WireError) in
      (
        error.plain, error.values, error.fields.map { NamedForm($0.name, $0.value) }, error.cause
      )
    })

  package func write(to writer: inout ByteWriter) { Self.byteForm.write(self, to: &writer) }

  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> WireError {
    try reader.nested(atMost: depthLimit + 1) { (reader) throws(MalformedBytes) in
      try byteForm.read(from: &reader)
    }
  }
}

extension WireError.Cause: ByteUnion {
  package static let byteCases: [ByteCase<WireError.Cause>] = [
    ByteCase(0, WireError.Cause.error) { if case .error(let error) = $0 { error } else { nil } },
    ByteCase(1, WireError.Cause.value) { if case .value(let value) = $0 { value } else { nil } },
  ]
}

// Folders stay on their machine.
extension WorkerReport.JobEvent.What: ByteUnion {
  package static let byteCases: [ByteCase<WorkerReport.JobEvent.What>] = [
    ByteCase(0, Self.log) { if case .log(let text) = $0 { text } else { nil } },
    ByteCase(1, { .progress(done: $0, total: $1) }) { event in
      if case .progress(let done, let total) = event { (done, total) } else { nil }
    },
    ByteCase(2, Self.work) { if case .work(let work) = $0 { work } else { nil } },
    ByteCase(3, { .set($0, $1, $2) }) { event in
      if case .set(let key, let value, let batch) = event { (key, value, batch) } else { nil }
    },
    ByteCase(4, { .ended($0, result: $1, $2) }) { event in
      if case .ended(let error, let result, let batch) = event {
        (error, result, batch)
      } else {
        nil
      }
    },
  ]
}

extension WorkerJob.Kind: ByteUnion {
  package static let byteCases: [ByteCase<WorkerJob.Kind>] = [
    ByteCase(0, Self.op) { if case .op(let place) = $0 { place } else { nil } },
    ByteCase(1, { .call($0, span: $1) }) { kind in
      if case .call(let input, let span) = kind { (input, span) } else { nil }
    },
  ]
}

extension WorkerJob.CallInput: ByteUnion {
  package static let byteCases: [ByteCase<WorkerJob.CallInput>] = [
    ByteCase(0, { .values }) { if case .values = $0 { () } else { nil } },
    ByteCase(1, Self.task) { if case .task(let error) = $0 { .some(error) } else { nil } },
    ByteCase(2, Self.error) { if case .error(let error) = $0 { error } else { nil } },
  ]
}

extension WorkerJob.OpPlace: ByteRecord {
  package static let byteForm = ByteForm(
    {
      (name, index, label, attempt, lineage, span, grace, memory, endingError, visible, keys, data)
        throws(MalformedBytes) in
      guard keys.count == data.values.count else { throw MalformedBytes() }
      return WorkerJob.OpPlace(
        name: name, index: index, label: label, attempt: attempt, lineage: lineage, span: span,
        grace: grace, memory: memory, endingError: endingError, visible: visible, keys: keys,
        data: data)
    },
    { (place: WorkerJob.OpPlace) in
      (
        place.name, place.index, place.label, place.attempt, place.lineage, place.span,
        place.grace, place.memory, place.endingError, place.visible, place.keys, place.data
      )
    })
}

extension ModuleSource: ByteRecord {
  package static let byteForm = ByteForm(
    { ModuleSource(name: $0, path: $1, text: $2) },
    { (module: ModuleSource) in (module.name, module.path, module.text) })
}
