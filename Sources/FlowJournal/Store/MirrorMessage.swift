internal import FlowEngine
internal import FlowSystem

/// A message about a run: what a process has written about it in one transaction, and who that process is.
struct MirrorMessage {
  /// How the process sees the run.
  enum State: UInt8 {
    /// The process executes it.
    case held = 0
    /// The process has ended, and the run hasn't.
    case left = 1
    case finished = 2
  }

  /// What a run begins with.
  struct Head {
    /// The arguments of the script.
    var words: [ByteString]
    var seed: Int64
    /// Seconds since 1970.
    var began: Double
  }

  var state: State
  /// How many processes have executed the run, this one included.
  var epoch: Int64
  /// The number of the run's first message; 0 in that itself.
  var first: UInt64
  /// When it was made, in seconds since 1970.
  var time: Double
  var holder: ProcessIdentity
  /// Only in the first message.
  var head: Head?
  /// The numbers of the records are those within the run, and all values are in them.
  var records: [OpRecord] = []
  /// New code with its parts.
  var codes: [KnownCode] = []

  /// Since version 2 records have the number of the outer record, since version 3 there is code; all are read.
  private static let version = 3

  var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.add(Self.version)
    writer.add(Int(state.rawValue))
    writer.add(fixed: epoch)
    writer.add(fixed: Int64(bitPattern: first))
    writer.add(time)
    writer.add(fixed: holder.pid)
    writer.add(holder.host)
    writer.add(holder.boot)
    writer.add(fixed: holder.start)
    writer.add(head == nil ? 0 : 1)
    if let head {
      writer.add(head.words)
      writer.add(fixed: head.seed)
      writer.add(head.began)
    }
    writer.add(records.count)
    for record in records { writer.add(record) }
    writer.add(codes.count)
    for code in codes {
      writer.add(code.code)
      writer.add(code.details)
    }
    return writer.bytes
  }

  /// Reads a message; nil for anything else, also for one of a later version.
  init?(_ bytes: [UInt8]) {
    let message = bytes.withUnsafeBytes { bytes -> MirrorMessage? in
      var reader = RecordReader(bytes)
      guard let message = Self.read(&reader), reader.isAtEnd else { return nil }
      return message
    }
    guard let message else { return nil }
    self = message
  }

  init(
    _ state: State, epoch: Int64, first: UInt64, head: Head? = nil, records: [OpRecord] = []
  ) {
    self.state = state
    self.epoch = epoch
    self.first = first
    time = WallClock.now()
    holder = .current
    self.head = head
    self.records = records
  }

  private init(
    state: State, epoch: Int64, first: UInt64, time: Double, holder: ProcessIdentity, head: Head?,
    records: [OpRecord], codes: [KnownCode]
  ) {
    self.state = state
    self.epoch = epoch
    self.first = first
    self.time = time
    self.holder = holder
    self.head = head
    self.records = records
    self.codes = codes
  }

  private static func read(_ reader: inout RecordReader) -> MirrorMessage? {
    guard let written = reader.number(), (1...version).contains(written),
      let number = reader.number().flatMap({ UInt8(exactly: $0) }),
      let state = State(rawValue: number), let epoch = reader.fixed(), let first = reader.fixed(),
      let time = reader.double(), let pid = reader.fixed(), let host = reader.text(),
      let boot = reader.text(), let start = reader.fixed(), let heads = reader.number()
    else { return nil }
    var head: Head?
    if heads == 1 {
      guard let words = reader.texts(), let seed = reader.fixed(), let began = reader.double()
      else { return nil }
      head = Head(words: words, seed: seed, began: began)
    }
    guard let records = reader.records(sayOuter: written > 1),
      let codes = written > 2 ? reader.codes() : []
    else { return nil }
    return MirrorMessage(
      state: state, epoch: epoch, first: UInt64(bitPattern: first), time: time,
      holder: ProcessIdentity(pid: pid, host: host, boot: boot, start: start), head: head,
      records: records, codes: codes)
  }
}

extension RecordWriter {
  fileprivate mutating func add(_ number: Double) {
    add(fixed: Int64(bitPattern: number.bitPattern))
  }

  private mutating func add(optional text: ByteString?) { add(text.map { [$0] } ?? []) }

  fileprivate mutating func add(_ record: OpRecord) {
    add(fixed: record.id)
    add(Int(record.state.rawValue))
    add(record.attempt)
    add(record.isOnce ? 1 : 0)
    add(record.began)
    add(record.ended)
    add(record.code)
    for text in [record.op, record.path, record.key] { add(text) }
    for text in [record.label, record.place, record.error] { add(optional: text) }
    add(record.inputs)
    add(record.reads)
    add(record.writes)
    add(record.cacheKey == nil ? 0 : 1)
    if let key = record.cacheKey { add(key) }
    add(fixed: record.outer ?? -1)
  }
}

extension RecordReader {
  fileprivate mutating func double() -> Double? {
    fixed().map { Double(bitPattern: UInt64(bitPattern: $0)) }
  }

  fileprivate mutating func codes() -> [KnownCode]? {
    list { reader in
      guard let code = reader.digest(), let details = reader.details() else { return nil }
      return KnownCode(code: code, details: details)
    }
  }

  fileprivate mutating func records(sayOuter: Bool) -> [OpRecord]? {
    list { $0.record(saysOuter: sayOuter) }
  }

  private mutating func record(saysOuter: Bool) -> OpRecord? {
    guard let id = fixed(), let state = number().flatMap({ OpRecord.State(rawValue: Int64($0)) }),
      let attempt = number(), let once = number(), let began = double(), let ended = double(),
      let code = digest(), let op = text(), let path = text(), let key = text(),
      let label = texts(), let place = texts(), let error = texts(), let inputs = self.inputs(),
      let reads = self.inputs(), let writes = writes(), let caches = number()
    else { return nil }
    var cacheKey: Digest?
    if caches == 1 {
      guard let found = digest() else { return nil }
      cacheKey = found
    }
    var outer: Int64?
    if saysOuter {
      guard let found = fixed() else { return nil }
      outer = found < 0 ? nil : found
    }
    return OpRecord(
      id: id, outer: outer, path: path, op: op, label: label.first, code: code, inputs: inputs,
      reads: reads,
      state: state, attempt: attempt, began: began, ended: ended, key: key, writes: writes,
      isOnce: once == 1, error: error.first, place: place.first, cacheKey: cacheKey)
  }
}
