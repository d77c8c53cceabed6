internal import FlowEngine
@_spi(Scripting) internal import LuaVM

// Values, errors and jobs of workers as bytes, for workers of other machines. Whatever the bytes are, reading them
// throws rather than traps.

/// The tag of a value.
private enum ValueTag {
  static let null: UInt8 = 0
  static let no: UInt8 = 1
  static let yes: UInt8 = 2
  static let integer: UInt8 = 3
  static let number: UInt8 = 4
  static let bytes: UInt8 = 5
  static let table: UInt8 = 6
  static let secret: UInt8 = 7
}

extension ByteWriter {
  mutating func add(_ value: WireValue) {
    switch value {
    case .null: add(byte: ValueTag.null)
    case .boolean(let flag): add(byte: flag ? ValueTag.yes : ValueTag.no)
    case .integer(let integer):
      add(byte: ValueTag.integer)
      add(fixed: integer)
    case .number(let number):
      add(byte: ValueTag.number)
      add(fixed: Int64(bitPattern: number.bitPattern))
    case .bytes(let bytes):
      add(byte: ValueTag.bytes)
      add(bytes)
    case .table(let offset):
      add(byte: ValueTag.table)
      add(count: offset)
    case .secret(let inner):
      add(byte: ValueTag.secret)
      add(inner)
    }
  }

  mutating func add(_ batch: WireBatch) {
    add(list: batch.values) { $0.add($1) }
    add(optional: batch.buffer) { writer, buffer in buffer.withUnsafeBytes { writer.add($0) } }
  }

  mutating func add(_ error: WireError) {
    add(error.plain)
    add(error.values)
    add(list: error.fields) { writer, field in
      writer.add(field.name)
      writer.add(field.value)
    }
    add(optional: error.cause) { writer, cause in
      switch cause {
      case .value(let value):
        writer.add(true)
        writer.add(value)
      case .error(let error):
        writer.add(false)
        writer.add(error)
      }
    }
  }

  mutating func add(_ event: WorkerReport.JobEvent.What) {
    switch event {
    case .log(let text):
      add(byte: 0)
      add(text)
    case .progress(let done, let total):
      add(byte: 1)
      add(fixed: Int64(bitPattern: done.bitPattern))
      add(optional: total) { $0.add(fixed: Int64(bitPattern: $1.bitPattern)) }
    case .work(let work):
      add(byte: 2)
      add(work)
    case .set(let key, let value, let batch):
      add(byte: 3)
      add(key)
      add(value)
      add(batch)
    case .folder(let path):
      // Folders stay on their machine; a reader refuses them.
      add(byte: 5)
      add(path)
    case .ended(let error, let result, let batch):
      add(byte: 4)
      add(optional: error) { $0.add($1) }
      add(result)
      add(batch)
    }
  }

  mutating func add(_ kind: WorkerJob.Kind) {
    switch kind {
    case .op(let place):
      add(byte: 0)
      add(place)
    case .call(let input, let span):
      switch input {
      case .values: add(byte: 1)
      case .task(let error):
        add(byte: 2)
        add(optional: error) { $0.add($1) }
      case .error(let error):
        add(byte: 3)
        add(error)
      }
      add(optional: span) { $0.add($1) }
    }
  }

  private mutating func add(_ place: WorkerJob.OpPlace) {
    add(place.name)
    add(count: place.index)
    add(optional: place.label) { $0.add($1) }
    add(count: place.attempt)
    add(place.lineage)
    add(optional: place.span) { $0.add($1) }
    add(optional: place.grace) { $0.add($1) }
    add(optional: place.memory) { $0.add(count: $1) }
    add(optional: place.endingError) { $0.add($1) }
    add(list: place.visible) { $0.add($1) }
    add(list: place.keys) { $0.add($1) }
    add(place.data)
  }
}

extension ByteReader {
  mutating func wireValue() throws(MalformedBytes) -> WireValue {
    switch try byte() {
    case ValueTag.null: return .null
    case ValueTag.no: return .boolean(false)
    case ValueTag.yes: return .boolean(true)
    case ValueTag.integer: return .integer(try fixed())
    case ValueTag.number: return .number(Double(bitPattern: UInt64(bitPattern: try fixed())))
    case ValueTag.bytes: return .bytes(try text())
    case ValueTag.table: return .table(try integer())
    case ValueTag.secret:
      // A secret contains no secret: values that are nested without end must not fill the stack.
      let inner = try wireValue(withoutSecret: ())
      return .secret(inner)
    default: throw MalformedBytes()
    }
  }

  private mutating func wireValue(withoutSecret: Void) throws(MalformedBytes) -> WireValue {
    var ahead = self
    if try ahead.byte() == ValueTag.secret { throw MalformedBytes() }
    return try wireValue()
  }

  mutating func batch() throws(MalformedBytes) -> WireBatch {
    let values = try list { (r) throws(MalformedBytes) in try r.wireValue() }
    let buffer = try optional { (r) throws(MalformedBytes) in EncodedBuffer(Array(try r.part())) }
    return WireBatch(values: ContiguousArray(values), buffer: buffer)
  }

  mutating func wireError(depth: Int = 0) throws(MalformedBytes) -> WireError {
    guard depth <= WireError.depthLimit else { throw MalformedBytes() }
    let plain = try error()
    let values = try batch()
    let fields = try list { (r) throws(MalformedBytes) in
      (name: try r.text(), value: try r.wireValue())
    }
    let cause = try optional { (r) throws(MalformedBytes) -> WireError.Cause in
      try r.flag() ? .value(try r.wireValue()) : .error(try r.wireError(depth: depth + 1))
    }
    return WireError(plain: plain, values: values, fields: fields, cause: cause)
  }

  mutating func jobEvent() throws(MalformedBytes) -> WorkerReport.JobEvent.What {
    switch try byte() {
    case 0: return .log(try text())
    case 1:
      let done = Double(bitPattern: UInt64(bitPattern: try fixed()))
      let total = try optional { (r) throws(MalformedBytes) in
        Double(bitPattern: UInt64(bitPattern: try r.fixed()))
      }
      return .progress(done: done, total: total)
    case 2: return .work(try work())
    case 3: return .set(try text(), try wireValue(), try batch())
    case 4:
      let error = try optional { (r) throws(MalformedBytes) in try r.wireError() }
      return .ended(error, result: try wireValue(), try batch())
    default: throw MalformedBytes()
    }
  }

  mutating func jobKind() throws(MalformedBytes) -> WorkerJob.Kind {
    let input: WorkerJob.CallInput
    switch try byte() {
    case 0: return .op(try place())
    case 1: input = .values
    case 2: input = .task(try optional { (r) throws(MalformedBytes) in try r.wireError() })
    case 3: input = .error(try wireError())
    default: throw MalformedBytes()
    }
    return .call(input, span: try optional { (r) throws(MalformedBytes) in try r.spanOrigin() })
  }

  private mutating func place() throws(MalformedBytes) -> WorkerJob.OpPlace {
    let name = try text()
    let index = try integer()
    let label = try optional { (r) throws(MalformedBytes) in try r.text() }
    let attempt = try integer()
    let lineage = try number()
    let span = try optional { (r) throws(MalformedBytes) in try r.spanOrigin() }
    let grace = try optional { (r) throws(MalformedBytes) in try r.duration() }
    let memory = try optional { (r) throws(MalformedBytes) in try r.integer() }
    let ending = try optional { (r) throws(MalformedBytes) in try r.wireError() }
    let visible = try list { (r) throws(MalformedBytes) in try r.text() }
    let keys = try list { (r) throws(MalformedBytes) in try r.text() }
    let data = try batch()
    guard keys.count == data.values.count else { throw MalformedBytes() }
    return WorkerJob.OpPlace(
      name: name, index: index, label: label, attempt: attempt, lineage: lineage, span: span,
      grace: grace, memory: memory, endingError: ending, visible: visible, keys: keys, data: data)
  }
}
