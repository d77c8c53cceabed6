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
  /// A step of a graph isn't executed: as a log, without a start.
  case skipped
  /// An op begins to wait for a limit before its start: `first` is the name. It has no line.
  case queues
  /// An op has waited for limits, and starts: `first` is the line's text, `second` the time in nanoseconds.
  case queued

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

  /// This record with other payloads.
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

/// Names the parts of a subject of the log, such as the steps of a flow.
protocol LogParts: AnyObject {
  /// The name of the part at a position; nil when there is none.
  func nameOfPart(at position: UInt32) -> ByteString?
  /// How many parts are executed, one after another or at the same time; nil when that depends on the data.
  var partCount: Int? { get }
}

/// The subject of some records of the log: the top of a run, a nested flow, a group, an inner op,
/// or a run of its own that an op has started.
struct LogScope {
  enum Kind: UInt8 {
    case top, flow, group, child
    /// An op that another op executes over its own data: positions are the 1-based index of the item
    /// in a group, else 0.
    case inner
  }

  /// The scope that encloses it.
  let parent: UInt32
  /// Its place in the parent: a step, or the 1-based index of an item.
  let position: UInt32
  let attempt: UInt32
  /// For an inner op or a run that an op has started: its 1-based number among those that the same attempt
  /// has started. 0 elsewhere.
  let number: UInt32
  let kind: Kind
  /// The name of its subject.
  let name: ByteString
  /// The parts that positions in this scope refer to; nil when positions are items, or mean the
  /// subject itself.
  let parts: (any LogParts)?
  /// When the enclosed execution could have started, in nanoseconds of the loop's clock.
  let queued: Int64
  /// Whether the run of a `child` executes a step of a machine.
  let isStep: Bool

  init(
    parent: UInt32, position: UInt32, attempt: UInt32, number: UInt32 = 0, kind: Kind,
    name: ByteString, parts: (any LogParts)? = nil, queued: Int64,
    isStep: Bool = false
  ) {
    self.parent = parent
    self.position = position
    self.attempt = attempt
    self.number = number
    self.kind = kind
    self.name = name
    self.parts = parts
    self.queued = queued
    self.isStep = isStep
  }
}

/// The bytes of a log's texts, one text after another.
///
/// It isn't an array, because appending a short text to one takes four times the instructions.
struct TextArena: ~Copyable {
  private var base: UnsafeMutablePointer<UInt8>?
  /// The number of bytes that are used.
  private(set) var count = 0
  /// The number of bytes for which there is memory.
  private(set) var capacity = 0

  init() {}

  deinit { base?.deallocate() }

  /// Lends the bytes to `body`; the pointer must not be used after `body` returns. (A property would give a pointer
  /// that outlives the memory, if the arena is used for nothing else.)
  @inline(__always)
  borrowing func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    body(UnsafeBufferPointer(start: base, count: count))
  }

  /// Copies a text to the end, and returns the offset where it starts.
  @inline(__always)
  mutating func append(_ text: UnsafeBufferPointer<UInt8>) -> Int {
    let offset = count
    if text.count > capacity - offset { grow(by: text.count) }
    if let base, let source = text.baseAddress {
      base.advanced(by: offset).update(from: source, count: text.count)
    }
    count = offset + text.count
    return offset
  }

  /// Makes room for so many bytes more, and as much again as there is.
  @inline(never)
  private mutating func grow(by room: Int) {
    let larger = max(64, capacity * 2, count + room)
    let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    if let base {
      copy.initialize(from: base, count: count)
      base.deallocate()
    }
    base = copy
    capacity = larger
  }

  /// Removes and returns all texts.
  mutating func take() -> TextArena {
    var taken = TextArena()
    swap(&self, &taken)
    return taken
  }
}

/// Where the texts of a log are after it has moved them, so that records which share a text still share it: those of the
/// arena, or the large ones.
///
/// Most texts come in the order of their offsets, because each was appended with its first record: those are found by a
/// binary search, and only the others need a dictionary, which would take three times as long for all.
struct MovedTexts {
  private var ascending: ContiguousArray<(from: Payload, to: Payload)> = []
  private var others: [UInt64: Payload] = [:]

  /// The new payload of a text; `move` makes it when the text is met for the first time.
  mutating func moved(_ payload: Payload, _ move: () -> Payload) -> Payload {
    if let last = ascending.last, payload.offset <= last.from.offset {
      if let known = known(payload) ?? others[payload.bits] { return known }
      let made = move()
      others[payload.bits] = made
      return made
    }
    let made = move()
    ascending.append((payload, made))
    return made
  }

  private func known(_ payload: Payload) -> Payload? {
    let offset = payload.offset
    var (low, high) = (0, ascending.count)
    while low < high {
      let middle = (low + high) / 2
      if ascending[middle].from.offset < offset {
        low = middle + 1
      } else {
        high = middle
      }
    }
    guard low < ascending.count, ascending[low].from.bits == payload.bits else { return nil }
    return ascending[low].to
  }
}
