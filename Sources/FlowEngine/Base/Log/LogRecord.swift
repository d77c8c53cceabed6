/// The kind of a record of the event log.
enum LogKind: UInt8 {
  case startWith, endWith, snapshotEntry
  case start, finish, log
  /// A start, and the successful finish that came `first` records and `second` nanoseconds later:
  /// most ops of a long flow have only this record, without one of its own for the finish. Readers
  /// get both events.
  case executed
  case add, replace, remove
  case groupCreated, groupFinished, groupStopped, groupEmpty, groupRefused
  /// An op is retried: `first` is the line's text, `second` the delay in nanoseconds.
  case retry
  /// The attempt after a retry starts, which may be later than the delay says. It has no line.
  case attempt
  /// A branch was taken, none was, or a predicate failed.
  case caseMatched, noCase, caseFailed
  /// The progress of an op: `first` of `second`, if that is known.
  case progress
  /// A machine went to another step: `first` is the line's text.
  case transition
  /// A machine's state has changed: `first` is the text that a line shows of it.
  case state
  /// A program or a request of an op has started. It has no line.
  case programStart, requestStart
  /// A program or a request of an op has ended; see LoggedWork.swift. It has no line.
  case program, request
  /// Code of a script waited: as these.
  case wait
  /// The undo of an op starts. It has no line.
  case undoStart
  /// The undo of an op has ended: as a finish.
  case undo
  /// An op isn't executed, because its result is known from a kept run: as a log.
  case kept

  /// Whether it only tells what an execution has done.
  var isDetail: Bool {
    switch self {
    case .log, .progress, .add, .replace, .remove, .state, .transition, .program, .request, .wait,
      .programStart, .requestStart:
      true
    default: false
    }
  }
}

/// The meaning of the 8 bytes of a payload.
enum PayloadTag: UInt8 {
  case none, falsehood, truth, integer, number
  /// Up to 7 bytes of text, the length in the top byte.
  case shortText
  /// 24 bits of length above 40 bits of offset into the text arena.
  case text
  /// An index into the list of large texts.
  case largeText
}

struct Payload {
  let tag: PayloadTag
  let bits: UInt64

  static let none = Payload(tag: .none, bits: 0)

  static func integer(_ value: Int64) -> Payload {
    Payload(tag: .integer, bits: UInt64(bitPattern: value))
  }

  static func number(_ value: Double) -> Payload {
    Payload(tag: .number, bits: value.bitPattern)
  }

  /// A text in the arena.
  static func text(at offset: Int, count: Int) -> Payload {
    Payload(tag: .text, bits: UInt64(count) << 40 | UInt64(offset))
  }

  /// Where a text begins in the arena; of a large text the index.
  var offset: Int { Int(bits & (1 << 40 - 1)) }
  /// Where the text is in the arena.
  var range: Range<Int> { offset..<offset + Int(bits >> 40) }

  /// The number in the payload; nil when it holds none.
  var number: Double? { tag == .number ? Double(bitPattern: bits) : nil }
}

/// One event: 40 bytes, without references.
struct LogRecord {
  /// Nanoseconds of the loop's clock.
  var time: Int64
  var first: UInt64
  var second: UInt64
  /// An index into the log's scopes.
  var scope: UInt32
  /// A part of the scope's subject, or the 1-based index of an item; `LogRecord.ownPosition` means
  /// the subject itself.
  var position: UInt32
  var key: UInt32
  /// From the lowest bit: kind 6, tag of first 3, tag of second 3, lane 8, attempt 12.
  var meta: UInt32

  static let ownPosition = UInt32.max

  /// Whether its kind is `.executed`, read without decoding the kind.
  var isExecuted: Bool { meta & 0x3F == UInt32(LogKind.executed.rawValue) }

  var kind: LogKind { LogKind(rawValue: UInt8(truncatingIfNeeded: meta & 0x3F)) ?? .log }

  var firstPayload: Payload {
    Payload(tag: PayloadTag(rawValue: UInt8(meta >> 6 & 7)) ?? .none, bits: first)
  }

  var secondPayload: Payload {
    Payload(tag: PayloadTag(rawValue: UInt8(meta >> 9 & 7)) ?? .none, bits: second)
  }

  /// The start in an `executed` record.
  var start: LogRecord {
    var record = self
    record.first = 0
    record.second = 0
    record.meta = Self.meta(.start, .none, .none, attempt: attempt)
    record.lane = lane
    return record
  }

  /// The finish in an `executed` record.
  var finish: LogRecord {
    var record = self
    record.first = 0
    record.time = time &+ Int64(bitPattern: second)
    record.meta = Self.meta(.finish, .none, .integer, attempt: attempt)
    record.lane = lane
    return record
  }

  /// The worker that the record comes from, counted from 1; 0 for the loop itself.
  var lane: UInt8 {
    get { UInt8(truncatingIfNeeded: meta >> 12) }
    set { meta = meta & ~(0xFF << 12) | UInt32(newValue) << 12 }
  }

  /// The same record with other payloads.
  func with(first: Payload, second: Payload) -> LogRecord {
    var record = self
    record.first = first.bits
    record.second = second.bits
    record.meta =
      meta & ~(0x3F << 6) | UInt32(first.tag.rawValue) << 6 | UInt32(second.tag.rawValue) << 9
    return record
  }

  /// The attempt, 4095 for any later one.
  var attempt: Int { Int(meta >> 20) }

  @inline(__always)
  static func meta(_ kind: LogKind, _ first: PayloadTag, _ second: PayloadTag, attempt: Int)
    -> UInt32
  {
    UInt32(kind.rawValue) | UInt32(first.rawValue) << 6 | UInt32(second.rawValue) << 9
      | UInt32(truncatingIfNeeded: min(attempt, 0xFFF)) << 20
  }
}
