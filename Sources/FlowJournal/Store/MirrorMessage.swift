package import FlowEngine
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

  /// The beginning of a run.
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

  /// Since version 2 records have the number of the outer record, since version 3 there is code, since version 4 records
  /// have lines of logs; all are read.
  private static let version = 4

  var bytes: [UInt8] {
    var writer = ByteWriter()
    writer.add(count: Self.version)
    Self.byteForm.write(self, to: &writer)
    return writer.bytes
  }

  /// Reads a message; nil for anything else, also for one of a later version.
  init?(_ bytes: [UInt8]) {
    let message = bytes.withUnsafeBytes { bytes -> MirrorMessage? in
      var reader = ByteReader(bytes)
      guard let written = try? reader.integer(), (1...Self.version).contains(written) else {
        return nil
      }
      reader.version = written
      guard let message = try? Self.byteForm.read(from: &reader), reader.isAtEnd else { return nil }
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

  private static let byteForm = ByteForm(
    { (state, epoch, first: Int64, time, holder, head, records: [OpRecord], codes: NewCodes) in
      MirrorMessage(
        state: state, epoch: epoch, first: UInt64(bitPattern: first), time: time, holder: holder,
        head: head, records: records, codes: codes.list)
    },
    { (message: MirrorMessage) in
      (
        message.state, message.epoch, Int64(bitPattern: message.first), message.time,
        message.holder, message.head, message.records, NewCodes(list: message.codes)
      )
    })

  /// None in messages of earlier versions.
  private struct NewCodes: ByteCodable {
    let list: [KnownCode]

    func write(to writer: inout ByteWriter) { writer.add(list) }
    static func read(from reader: inout ByteReader) throws(MalformedBytes) -> NewCodes {
      NewCodes(list: (1...2).contains(reader.version) ? [] : try reader.read())
    }
  }
}

extension MirrorMessage.State: ByteCodable {}

extension MirrorMessage.Head: ByteRecord {
  static let byteForm = ByteForm(
    { MirrorMessage.Head(words: $0, seed: $1, began: $2) },
    { (head: MirrorMessage.Head) in (head.words, head.seed, head.began) })
}

extension OpRecord: ByteRecord {
  package static let byteForm = ByteForm(
    {
      (
        id, state, attempt, isOnce, began, ended, code, op, path, key, label, place, error, inputs,
        reads, writes, cacheKey, outer: OuterNumber, notes: Notes
      ) in
      OpRecord(
        id: id, outer: outer.number, path: path, op: op, label: label, code: code, inputs: inputs,
        reads: reads, state: state, attempt: attempt, began: began, ended: ended, key: key,
        writes: writes, isOnce: isOnce, error: error, place: place, cacheKey: cacheKey,
        why: notes.why, lines: notes.lines)
    },
    { (record: OpRecord) in
      (
        record.id, record.state, record.attempt, record.isOnce, record.began, record.ended,
        record.code, record.op, record.path, record.key, record.label, record.place, record.error,
        record.inputs, record.reads, record.writes, record.cacheKey,
        OuterNumber(number: record.outer), Notes(why: record.why, lines: record.lines)
      )
    })

  /// Not in messages of the first version.
  private struct OuterNumber: ByteCodable {
    let number: Int64?

    func write(to writer: inout ByteWriter) { writer.add(fixed: number ?? -1) }
    static func read(from reader: inout ByteReader) throws(MalformedBytes) -> OuterNumber {
      if reader.version == 1 { return OuterNumber(number: nil) }
      let number = try reader.fixed()
      return OuterNumber(number: number < 0 ? nil : number)
    }
  }
}

extension OpRecord {
  /// Not in messages before the fourth version.
  private struct Notes: ByteCodable {
    let why: ByteString?
    let lines: [ByteString]

    func write(to writer: inout ByteWriter) {
      writer.add(why)
      writer.add(lines)
    }
    static func read(from reader: inout ByteReader) throws(MalformedBytes) -> Notes {
      if (1...3).contains(reader.version) { return Notes(why: nil, lines: []) }
      return Notes(why: try reader.read(), lines: try reader.read())
    }
  }
}

extension OpRecord.State: ByteCodable {
  package func write(to writer: inout ByteWriter) { writer.add(count: Int(rawValue)) }
  package static func read(from reader: inout ByteReader) throws(MalformedBytes) -> OpRecord.State {
    guard let state = OpRecord.State(rawValue: Int64(try reader.integer())) else {
      throw MalformedBytes()
    }
    return state
  }
}
