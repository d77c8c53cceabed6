internal import FlowSystem

/// The ordered list of a run's events, confined to its loop's thread. Events are appended; beyond the log's
/// limit old ones are dropped, see EventLog+Limit.swift.
///
/// The summary and `Run.events` are views: nothing is formatted before it is read.
///
/// ```swift
/// final class Lines: EventSink {
///   func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) { print(event.path) }
/// }
/// ```
public final class EventLog {
  /// Sinks that get each event as it is appended.
  @exclusivity(unchecked) private(set) var sinks: [any EventSink]
  @exclusivity(unchecked) private var eventSinks: [any EventSink] = []
  /// Those of them that get its record instead.
  @exclusivity(unchecked) private var recordSinks: ContiguousArray<any RecordSink> = []
  let keys: KeyTable
  /// The run's name.
  let title: ByteString
  /// When the run started: nanoseconds of the loop's clock, and from 1970 to that clock's start.
  let began: Int64
  let wallBase: Int64
  @exclusivity(unchecked) private(set) var scopes: ContiguousArray<LogScope> = []
  /// The logs of the runs that its ops have started; see LogSlice.swift.
  var children = ChildLogs()
  /// The paths of scopes that have been read; see EventLog+Identity.swift.
  var scopePaths: [UInt32: ByteString] = [:]
  /// The labels of items; see EventLog+Reading.swift.
  var labels: [LabelPlace: ByteString] = [:]
  /// The run's id, unique across processes; made when it is read.
  package private(set) lazy var runID: ByteString = RunIdentifier.next()
  /// The texts that no line may show, when there are secrets.
  private let allSecrets: SecretTexts
  /// Those that it has had itself.
  @exclusivity(unchecked) var secretHolds: SecretHolds?
  /// The texts that no line may show; nil as long as there are no secrets.
  var secrets: SecretTexts? { hasSecrets ? allSecrets : nil }
  /// Whether there are secrets. Logs without secrets only pay for this branch: it retains nothing.
  @inline(__always)
  var hasSecrets: Bool { unretained(allSecrets) { $0.exist } }

  // Unchecked exclusivity: see HotPath.swift.
  //
  // The chunks are allocated here, filled from the start to the end, and freed in deinit; `cursor`
  // stays between the last chunk's base and `limit`.

  private(set) var chunks: ContiguousArray<UnsafeMutableBufferPointer<LogRecord>> = []
  /// How many records of the oldest chunks aren't ops of one record; see EventLog+Limit.swift.
  var othersInChunks: ContiguousArray<Int?> = []
  /// How many records have been appended.
  @exclusivity(unchecked) private var appended = 0
  /// How many of them have been removed again; see `drain` and `removeRecords`.
  @exclusivity(unchecked) private(set) var removed = 0
  /// How many had been appended when some were removed last: older ones may have moved since.
  @exclusivity(unchecked) private var barrier = 0
  @exclusivity(unchecked) private var cursor: UnsafeMutablePointer<LogRecord>?
  @exclusivity(unchecked) private var limit: UnsafeMutablePointer<LogRecord>?
  @exclusivity(unchecked) private var arena = TextArena()
  @exclusivity(unchecked) private var largeTexts: ContiguousArray<ByteString> = []
  /// The most events that it keeps, and what has been dropped for that; see EventLog+Limit.swift.
  package var bound = LogBound()
  /// Notified before the first events are dropped.
  var dropObserver: (any DropObserver)?
  /// Counts the memory of the log; nil unless something limits it.
  private(set) var account: MemoryAccount?
  /// The bytes that are counted there, besides the large texts.
  private var counted = 0
  /// The bytes of the large texts that were kept since events were dropped, while there is an account.
  private var heavyBytes = 0
  /// How many callers refer to records or texts, so that nothing may be dropped.
  @exclusivity(unchecked) private var holders = 0

  init(
    title: ByteString, keys: KeyTable, clock: any TimeSource, began: Int64, sinks: [any EventSink]
  ) {
    self.title = title
    self.keys = keys
    allSecrets = keys.secrets
    self.began = began
    self.wallBase = clock.wallBase
    self.sinks = sinks
    if !sinks.isEmpty { sortSinks() }
  }

  private func sortSinks() {
    recordSinks = ContiguousArray(sinks.compactMap { $0 as? any RecordSink })
    eventSinks = sinks.filter { !($0 is any RecordSink) }
  }

  /// Adds a sink, which gets the events from now on.
  func add(_ sink: any EventSink) {
    sinks.append(sink)
    sortSinks()
  }

  /// Removes a sink that needs no more events.
  func remove(_ sink: any EventSink) {
    sinks.removeAll { $0 === sink }
    sortSinks()
  }

  deinit {
    for chunk in chunks { chunk.deallocate() }
    account?.release(counted)
    children.releaseAll()
  }

  /// Counts the memory of the log from now on.
  func count(in account: MemoryAccount) {
    self.account = account
    recount()
  }

  /// Counts what has changed. Called where memory is allocated or released, never for each record.
  private func recount() {
    guard let account else { return }
    let bytes = byteCount
    account.change(by: bytes - counted)
    counted = bytes
  }

  private func count(_ text: ByteString, in account: MemoryAccount) {
    account.add(text)
    heavyBytes += text.count
    // The next record finds that there is no room, and drops some.
    if isHeavy { limit = cursor }
  }

  /// The number of records; an op that succeeds at once takes one.
  package var recordCount: Int { count }

  /// The number of records that haven't been removed.
  @inline(__always)
  var count: Int { appended &- removed }

  /// The number of records of this log and of those that it keeps.
  package var recordCountWithChildren: Int { sumWithChildren(\.count) }

  /// The number of records that were ever appended to this log and to those that it keeps.
  package var allAppended: Int { sumWithChildren(\.appended) }

  private func sumWithChildren(_ number: (EventLog) -> Int) -> Int {
    var sum = 0
    var open = [self]
    while let log = open.popLast() {
      sum += number(log)
      open += log.children.logs.values
    }
    return sum
  }

  /// The memory that the records and texts take, in bytes.
  package var byteCount: Int {
    chunks.reduce(0) { $0 + $1.count * MemoryLayout<LogRecord>.stride } + arena.capacity
  }

  func addScope(_ scope: LogScope) -> UInt32 {
    scopes.append(scope)
    return UInt32(truncatingIfNeeded: scopes.count - 1)
  }

  /// Appends a record without texts. Used on the hot path: everything stays in registers.
  @inline(__always)
  func append(
    _ kind: LogKind, time: Int64, scope: UInt32, position: UInt32, key: UInt32 = 0,
    attempt: Int = 1, lane: UInt8 = 0, first: Payload = .none, second: Payload = .none,
    value: FlowValue? = nil
  ) {
    let record = LogRecord(
      time: time, first: first.bits, second: second.bits, scope: scope, position: position,
      key: key,
      meta: LogRecord.meta(kind, first.tag, second.tag, attempt: attempt) | UInt32(lane) << 12)
    put(record, value)
  }

  /// Appends a record unchanged.
  @inline(__always)
  func put(_ record: LogRecord, _ value: FlowValue? = nil) {
    if cursor == limit { return putAfterGrowing(record, value) }
    store(record)
    if !sinks.isEmpty { notify(record, value) }
  }

  @inline(__always)
  private func store(_ record: LogRecord) {
    cursor?.initialize(to: record)
    cursor = cursor?.advanced(by: 1)
    appended &+= 1
  }

  @inline(never)
  private func putAfterGrowing(_ record: LogRecord, _ value: FlowValue?) {
    limit = chunks.last.flatMap { $0.baseAddress?.advanced(by: $0.count) }
    if cursor == limit { grow() }
    store(record)
    if !sinks.isEmpty { notify(record, value) }
    // Not before: the record refers to texts that move with the others.
    if count >= bound.next || isHeavy, holders == 0 { dropEvents() }
  }

  /// Has the next attempt to drop events begin at the bound, also within a chunk.
  func stopAtBound() {
    guard let cursor, let end = limit, bound.next - count < end - cursor else { return }
    limit = cursor.advanced(by: max(bound.next - count, 0))
  }

  /// Whether it has more events than it should, and has kept so many large texts since it dropped some that
  /// dropping a few costs less than the texts did.
  private var isHeavy: Bool { count >= bound.limit && heavyBytes >= max(1 << 16, count * 64) }

  /// Drops no events while `body` appends some; those afterwards that have become too many.
  func keepingEvents(_ body: () -> Void) {
    holders += 1
    body()
    holders -= 1
    if count >= bound.next, holders == 0 { dropEvents() }
  }

  /// Whether there are records that haven't been removed.
  var isFilled: Bool { count > 0 }

  /// Removes and returns all records and texts.
  func drain() -> (
    records: ContiguousArray<LogRecord>, arena: ContiguousArray<UInt8>,
    largeTexts: ContiguousArray<ByteString>
  ) {
    var records: ContiguousArray<LogRecord> = []
    records.reserveCapacity(count)
    for chunk in chunks {
      let left = count - records.count
      records.append(contentsOf: chunk.prefix(left))
    }
    removed = appended
    barrier = appended
    othersInChunks = []
    // The last chunk is the largest one: it is filled again.
    while chunks.count > 1 { chunks.removeFirst().deallocate() }
    cursor = chunks.first?.baseAddress
    limit = chunks.first.flatMap { $0.baseAddress?.advanced(by: $0.count) }
    let texts = (arena.take().withBytes { ContiguousArray($0) }, largeTexts)
    if let account { for text in largeTexts { account.handOver(text) } }
    largeTexts = []
    recount()
    return (records, texts.0, texts.1)
  }

  /// Calls a function with each record as it is stored, the oldest first, and its index.
  func forEachStoredRecord(_ body: (_ index: Int, _ record: LogRecord) -> Void) {
    var index = 0
    for chunk in chunks {
      for record in chunk.prefix(count - index) {
        body(index, record)
        index += 1
      }
    }
  }

  /// Removes the records at the indices where `isRemoved` is true, and the texts of those.
  func removeRecords(where isRemoved: [Bool]) {
    let total = count
    // The new index of each record, and of the end.
    var places = ContiguousArray<Int>(repeating: 0, count: total + 1)
    for index in 0..<total { places[index + 1] = places[index] + (isRemoved[index] ? 0 : 1) }
    let oldArena = arena.take()
    let oldTexts = largeTexts
    largeTexts = []
    // Records share texts: those of a machine's transitions.
    var texts = MovedTexts()
    var largeOnes = MovedTexts()
    func moved(_ payload: Payload) -> Payload {
      switch payload.tag {
      case .text:
        return texts.moved(payload) {
          oldArena.withBytes { bytes in
            let text = UnsafeBufferPointer(rebasing: bytes[payload.range])
            return .text(at: arena.append(text), count: text.count)
          }
        }
      case .largeText:
        // It counts already, unless it was handed over to another loop.
        return largeOnes.moved(payload) { keep(oldTexts[Int(payload.bits)], isNew: false) }
      case .none, .falsehood, .truth, .integer, .number, .shortText: return payload
      }
    }
    var target = (chunk: 0, offset: 0)
    // Never after the record that is read.
    func place(_ record: LogRecord) {
      if target.offset == chunks[target.chunk].count { target = (target.chunk + 1, 0) }
      chunks[target.chunk][target.offset] = record
      target.offset += 1
    }
    forEachStoredRecord { index, record in
      if isRemoved[index] { return }
      var record = record
      if record.isExecuted {
        // Mostly nothing is between its start and its finish.
        if record.first == 0 { return place(record) }
        // Its finish comes as many records later as are left of those between.
        let end = min(index + 1 + Int(truncatingIfNeeded: record.first), total)
        record.first = UInt64(places[end] - places[index + 1])
      } else {
        record = record.with(first: moved(record.firstPayload), second: moved(record.secondPayload))
      }
      place(record)
    }
    removed += total - places[total]
    barrier = appended
    othersInChunks = []
    while chunks.count > target.chunk + 1 { chunks.removeLast().deallocate() }
    cursor = chunks.last.flatMap { $0.baseAddress?.advanced(by: target.offset) }
    limit = chunks.last.flatMap { $0.baseAddress?.advanced(by: $0.count) }
    heavyBytes = 0
    recount()
  }

  /// Replaces the oldest chunks, but not the last one, by those of their records that are left. The others have no texts.
  func replaceChunks(_ front: Int, with left: ContiguousArray<LogRecord>) {
    removed += chunks.prefix(front).reduce(-left.count) { $0 + $1.count }
    barrier = appended
    for chunk in chunks.prefix(front) { chunk.deallocate() }
    chunks.removeFirst(front)
    let others = othersInChunks.prefix(front).reduce(0) { $0 + ($1 ?? 0) }
    othersInChunks.removeFirst(front)
    if !left.isEmpty {
      let chunk = UnsafeMutableBufferPointer<LogRecord>.allocate(capacity: left.count)
      _ = chunk.initialize(from: left)
      chunks.insert(chunk, at: 0)
      othersInChunks.insert(others, at: 0)
    }
    heavyBytes = 0
    recount()
  }

  /// The place of the start of an op that is executing now.
  struct Start {
    /// Safe as long as the log lives and no record has been removed since: chunks never move.
    fileprivate let record: UnsafeMutablePointer<LogRecord>?
    fileprivate let end: Int
  }

  /// Appends the start of an op.
  @inline(__always)
  func appendStart(time: Int64, scope: UInt32, position: UInt32) -> Start {
    append(.start, time: time, scope: scope, position: position)
    return Start(record: cursor?.advanced(by: -1), end: appended)
  }

  /// Appends the successful finish of an op that never waited, into the record of its start; false
  /// when records have been removed meanwhile.
  @inline(__always)
  func appendFinish(of start: Start, time: Int64) -> Bool {
    guard let record = start.record, start.end > barrier else { return false }
    let duration = time &- record.pointee.time
    record.pointee.first = UInt64(truncatingIfNeeded: appended &- start.end)
    record.pointee.second = UInt64(bitPattern: duration)
    record.pointee.meta =
      LogRecord.meta(.executed, .none, .integer, attempt: record.pointee.attempt)
    if !sinks.isEmpty { notify(record.pointee.finish, nil) }
    return true
  }

  private func grow() {
    // Small runs stay small; chunks never move, so that growing copies nothing. The last one before the
    // limit ends there.
    let wanted = chunks.last.map { min($0.count * 2, Self.largestChunk) } ?? 16
    let size = count < bound.next ? min(wanted, bound.next - count) : wanted
    let chunk = Self.allocate(size)
    chunks.append(chunk)
    cursor = chunk.baseAddress
    limit = chunk.baseAddress?.advanced(by: size)
    recount()
  }

  /// Chunks grow up to 1 MiB.
  private static let largestChunk = (1 << 20) / MemoryLayout<LogRecord>.stride

  private static func allocate(_ size: Int) -> UnsafeMutableBufferPointer<LogRecord> {
    let bytes = size * MemoryLayout<LogRecord>.stride
    guard bytes >= 1 << 19 else { return .allocate(capacity: size) }
    // The pointer alone frees every chunk as it was allocated; records need no deinit.
    let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: pageSize)
    // Page faults would cost more than writing the records does.
    populate(memory, bytes)
    return UnsafeMutableBufferPointer(
      start: memory.bindMemory(to: LogRecord.self, capacity: size), count: size)
  }

  @inline(never)
  private func notify(_ record: LogRecord, _ value: FlowValue?) {
    // A sink may append something.
    holders += 1
    defer { holders -= 1 }
    var index = 0
    while index < recordSinks.count {
      recordSinks[index].append(record, in: self)
      index += 1
    }
    if !eventSinks.isEmpty { notifyEventSinks(record, value) }
  }

  private func notifyEventSinks(_ record: LogRecord, _ value: FlowValue?) {
    guard let event = event(of: record) else { return }
    var value = value
    // If the text may not show a part of the value, sinks must not get the plain value either.
    if let secrets, let whole = value, secrets.hidesPart(of: whole) {
      value = .secret(whole)
    }
    for sink in eventSinks { sink.append(event, value: value, in: self) }
  }

  /// Keeps a text, without secrets, and returns a reference to it.
  func payload(_ text: ByteString) -> Payload {
    guard let secrets else { return keep(text) }
    return keep(secrets.redacted(text))
  }

  private func keep(_ text: ByteString, isNew: Bool = true) -> Payload {
    let length = text.count
    if length <= 7 {
      var bits = UInt64(length) << 56
      for (index, byte) in text.bytes.enumerated() { bits |= UInt64(byte) << UInt64(index * 8) }
      return Payload(tag: .shortText, bits: bits)
    }
    // A large text shares its value's storage instead of being copied.
    if length >= HeldBlocks.smallest || arena.count >= 1 << 40 {
      largeTexts.append(text)
      if isNew, let account { count(text, in: account) }
      return Payload(tag: .largeText, bits: UInt64(largeTexts.count - 1))
    }
    // Not the array itself, which would be retained.
    let offset = text.withUnsafeBytes { arena.append($0) }
    return .text(at: offset, count: length)
  }

  /// Keeps a value if there is one. (`map` would copy it.)
  @inline(__always)
  func payload(_ value: FlowValue?) -> Payload {
    switch value {
    case .none: .none
    case .some(let value): payload(value)
    }
  }

  /// Keeps a value: scalars unchanged, others as the text that a line shows of them now.
  func payload(_ value: FlowValue) -> Payload {
    if hasSecrets, let text = allSecrets.redactedText(of: value) { return keep(text) }
    return switch value {
    case .null: .none
    case .boolean(let value): Payload(tag: value ? .truth : .falsehood, bits: 0)
    case .integer(let value): .integer(value)
    case .number(let value): Payload(tag: .number, bits: value.bitPattern)
    case .bytes(let value): keep(value)
    case .opaque(let value): keep(value.logText(limit: FlowValue.logLimit))
    }
  }

  /// The text of a payload as a line shows it.
  func text(_ payload: Payload) -> ByteString {
    arena.withBytes { Self.text(payload, arena: $0, largeTexts: largeTexts) }
  }

  static func text(
    _ payload: Payload, arena: UnsafeBufferPointer<UInt8>, largeTexts: ContiguousArray<ByteString>
  ) -> ByteString {
    switch payload.tag {
    case .none: return "nil"
    case .falsehood: return "false"
    case .truth: return "true"
    case .integer: return FlowValue.integer(Int64(bitPattern: payload.bits)).logText
    case .number: return FlowValue.number(Double(bitPattern: payload.bits)).logText
    case .shortText:
      let length = Int(payload.bits >> 56)
      return ByteString(
        (0..<length).map { UInt8(truncatingIfNeeded: payload.bits >> UInt64($0 * 8)) })
    case .text:
      return ByteString(arena[payload.range])
    case .largeText: return largeTexts[Int(payload.bits)]
    }
  }
}
