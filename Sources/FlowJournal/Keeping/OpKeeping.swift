@_spi(Scripting) package import FlowEngine

/// The keeping of one execution: it notes what the op reads and sets, and writes the record.
final class OpKeeping: KeptExecution {
  private let keeper: Keeper
  // Unchecked exclusivity: see HotPath.swift of the engine. Only the loop's thread uses the properties, and no access lasts
  // into a call of anything that uses them.
  @exclusivity(unchecked) private var record: OpRecord
  @exclusivity(unchecked) private var isWritten = false
  let lineage: UInt64
  private let given: [DataKey]
  /// The tables that it was given or has read, as they were then.
  private(set) var seen: [SeenTable] = []
  /// Whether a value counts instead of what it is given and reads.
  private let hasCacheKey: Bool
  /// The declared outputs that are files.
  private let outputFiles: [(key: DataKey, type: FlowValueType)]
  /// The paths of those that the op has made, by the places of their writes.
  private var made: [(write: Int, paths: [ByteString])] = []
  /// The files that it depends on, besides its inputs.
  private var dependencies: Set<ByteString> = []
  /// The temporary folders that were made within it.
  private var folders: Set<ByteString> = []
  /// The keeping of the op that executes it.
  private weak var outer: OpKeeping?
  @exclusivity(unchecked) private var set = KeyList()
  @exclusivity(unchecked) private var isRead = KeyList()

  /// Why its code can't be compared.
  private let codeProblem: ByteString?
  private let loop: FlowEventLoop

  let wasInterrupted: Bool
  let continuesWaits: Bool
  /// How many kept ops are around it.
  private let depth: Int
  /// The record of the finished op that it is executed instead of.
  private let replaced: Int?
  let isWithinUndo: Bool
  /// The ops that are kept as finished within it, if that has to be known.
  private var inner: [UndoneKeeping] = []

  init(
    _ keeper: Keeper, _ record: OpRecord, lineage: UInt64, _ work: KeptWork, depth: Int,
    replaced: Int?, interruption: OpRecord.State?
  ) {
    self.keeper = keeper
    self.depth = depth
    self.replaced = replaced
    isWithinUndo = work.isWithinUndo
    outer = work.outer as? OpKeeping
    wasInterrupted = interruption == .started
    // One that may have had its effect executes again because somebody said so: it waits again.
    continuesWaits = interruption == .stopped || interruption == .started && !record.isOnce
    self.record = record
    self.lineage = lineage
    given = work.given
    hasCacheKey = work.cacheKey != nil
    outputFiles = work.outputFiles
    codeProblem = work.codeProblem
    loop = work.loop
    for (place, key) in given.enumerated() {
      // Those of a cache key aren't among the record's inputs.
      note(work.inputs[place].value, key, hasCacheKey ? nil : record.inputs[place].digest)
    }
  }

  deinit { if !seen.isEmpty { keeper.sightings.forget(seen, by: self) } }

  /// Notes a table that the op sees under a key; `digest` is the digest of its content, if it is known.
  private func note(_ value: FlowValue?, _ key: DataKey, _ digest: Digest?) {
    guard case .opaque(let table)? = value, !(table is any StreamValue) else { return }
    let identity = table.identity
    keeper.sightings.add(identity, by: self, at: seen.count)
    seen.append(
      SeenTable(
        key: key, value: table, identity: identity, digest: digest ?? keeper.digest(of: value)))
  }

  /// How many lines of the log are kept, the last ones, and how long they may be.
  private static let mostLines = 100
  private static let longestLine = 1000

  func noteLine(_ text: ByteString) {
    if record.lines.count == Self.mostLines { record.lines.removeFirst() }
    let text = loop.secrets.redacted(text)
    record.lines.append(
      text.count <= Self.longestLine ? text : ByteString(text.bytes.prefix(Self.longestLine)) + "…")
  }

  /// Called when the end is kept, or needn't be.
  private var endObservers: [() -> Void] = []

  var keepsStart: Bool { record.isOnce }

  var identity: ByteString? {
    if codeProblem != nil || record.inputs.contains(where: { $0.digest == .incomparable }) {
      return nil
    }
    let content = OpContent(code: record.code, inputs: record.inputs)
    return "\(record.key)-\(content.code.followed(by: content.inputs).description)"
  }

  func afterEnd(_ body: @escaping () -> Void) { endObservers.append(body) }

  /// Writes the start without waiting for it, unless that was done, or the end was written.
  func writeStart() {
    if !isWritten && record.ended == 0 { write(then: nil) }
  }

  /// The place of an op within it, which has a lineage. Its own record is in the store before the other's.
  func place(within lineage: UInt64) -> OpPlace {
    if !isWritten { write(then: nil) }
    // Without a store it has no number, and nothing earlier is within it.
    let number = record.id == 0 ? -1 : record.number
    return OpPlace(outer: number, depth: depth + 1, replaced: replaced, lineage: lineage)
  }

  func keepStart(then: @escaping (FlowError?) -> Void) { write(then: then) }

  private func write(then: ((FlowError?) -> Void)?) {
    isWritten = true
    record.id = keeper.write(record, then: then)
  }

  func willRead(_ key: DataKey, in bucket: DataBucket) {
    // The keys that it was given, has set or has read needn't be noted again. Few ops have many keys.
    if given.contains(key) || set.contains(key) || !isRead.insert(key) { return }
    let keys = bucket.keys
    let name = keys.name(of: key)
    let digest = try? keeper.digest(ofRead: name, in: bucket) { name in
      set.keys.contains { keys.name(of: $0) == name }
    }
    note(bucket.get(key), key, digest)
    if hasCacheKey { return }
    record.reads.append(KeptInput(name: name, digest: digest ?? .incomparable))
  }

  func makesFolder(_ path: ByteString) {
    var next: OpKeeping? = self
    while let keeping = next {
      keeping.folders.insert(path)
      next = keeping.outer
    }
  }

  func dependsOn(_ path: ByteString) {
    // The op that executes it is kept as a whole, and so depends on it, too.
    var next: OpKeeping? = self
    while let keeping = next {
      keeping.dependencies.insert(path)
      next = keeping.outer
    }
  }

  func willSet(_ key: DataKey) {
    _ = set.insert(key)
  }

  func keepEnd(_ end: KeptEnd, then: @escaping (FlowError?) -> Void) {
    let observers = endObservers
    if observers.isEmpty { return writeEnd(end, then) }
    endObservers = []
    writeEnd(end) { problem in
      then(problem)
      if problem == nil { for observer in observers { observer() } }
    }
  }

  private func writeEnd(_ end: KeptEnd, _ then: @escaping (FlowError?) -> Void) {
    record.ended = Keeper.time(on: loop)
    record.attempt = end.attempt
    let changed = end.data.map { changedTables(in: $0) } ?? []
    if !seen.isEmpty {
      keeper.sightings.forget(seen, by: self)
      for (place, table) in changed { noteChange(of: table, at: place) }
    }
    // A text in an earlier line may be secret since then.
    record.lines = record.lines.map { loop.secrets.redacted($0) }
    if let error = end.error {
      keeper.noteFailure(record.path, error)
      // Stopped after its start it may have had its effect: it stays as started.
      let isStopped = [.cancelled, .timeout, .stalled, .time, .instructions].contains(error.kind)
      if record.isOnce, isStopped, end.attempt > 0 {
        then(nil)
        return
      }
      record.state = error.kind == .cancelled ? .stopped : .failed
      record.error = loop.secrets.redacted(error.message)
      // Nothing depends on it: what isn't known to have finished is executed again.
      write(then: nil)
      then(nil)
      return
    }
    do {
      record.writes = try writes(of: end, changed)
    } catch {
      return refuse(FlowError.from(error), then)
    }
    // Other runs could rely on what is undone.
    if !end.undos.isEmpty { record.cacheKey = nil }
    record.reads += folders.sorted().filter { record.writes.mention($0) }.map { .folder($0) }
    let paths = dependencies.union(made.flatMap(\.paths))
    if paths.isEmpty { return finish(then) }
    keeper.readFiles(at: paths, on: loop) { [self] result in
      do throws(FlowError) {
        try noteFiles(try result.get())
        finish(then)
      } catch {
        refuse(error, then)
      }
    }
  }

  /// Notes the contents of the files that it has made, and of those that it depends on.
  private func noteFiles(_ contents: [ByteString: FileContent]) throws(FlowError) {
    for (index, paths) in made {
      var named: [NamedFile] = []
      for path in paths {
        guard case .digest(let digest)? = contents[path] else {
          let shown: ByteString = "<\(record.writes[index].name)> (\(path))"
          throw FlowError(.error, "\(shown), which it has made, was removed or can't be read")
        }
        named.append(NamedFile(path: path, content: digest))
      }
      record.writes[index].files = named
    }
    for path in dependencies.sorted() {
      guard let digest = Keeper.digest(ofDependency: contents[path]) else {
        throw FlowError(.error, "'\(path)', on which it depends, can't be read")
      }
      record.reads.append(.dependency(path, digest))
    }
  }

  /// Doesn't keep an op that has succeeded.
  private func refuse(_ error: FlowError, _ then: @escaping (FlowError?) -> Void) {
    if record.isOnce {
      let why = error.message
      then(FlowError(.error, "is executed only once, but can't be kept: \(why)"))
    } else {
      keeper.warn(record.op, error.message)
      then(nil)
    }
  }

  private func finish(_ then: @escaping (FlowError?) -> Void) {
    record.state = .finished
    if record.cacheKey != nil, let read = record.reads.first(where: { !$0.isDependency }) {
      record.cacheKey = nil
      keeper.warnOfCache(record.op, read.name)
    }
    write(then: then)
  }

  func noteInner(undone: @escaping UndoneKeeping) { inner.append(undone) }

  func keepInnerUndone(then: @escaping (FlowError?) -> Void) { undone(all: inner)(then) }

  func keepUndone(then: @escaping (FlowError?) -> Void) {
    keeper.writeUndone(isWritten ? [record] : [], then: then)
  }

  /// The values that the op has set, and the tables that it was given or has read and has changed.
  private func writes(
    of end: KeptEnd, _ changed: [(place: Int, table: any OpaqueValue)]
  ) throws -> [KeptWrite] {
    if let codeProblem {
      throw FlowError(.error, "its code can't be compared: \(codeProblem)")
    }
    for input in record.inputs where input.digest == .incomparable {
      throw FlowError(.error, "<\(input.key)>, which it was given, can't be compared")
    }
    for read in record.reads where read.digest == .incomparable {
      throw FlowError(.error, "<\(read.name)>, which it has read, can't be compared")
    }
    var writes: [KeptWrite] = []
    if let data = end.data {
      var places = TablePlaces()
      for table in seen { places.add(table.value, data.keys.name(of: table.key), isSeen: true) }
      for (place, table) in changed {
        let (key, name) = (seen[place].key, data.keys.name(of: seen[place].key))
        let shown: ByteString = "<\(name)>, which it has changed,"
        if seen[place].isShared {
          let problem: ByteString = "<\(name)> was changed while another op used it"
          // It has had its effect, so it is kept, with all that the table has now.
          if !record.isOnce { throw FlowError(.error, problem) }
          keeper.warnOfShared(record.op, problem)
        }
        let value = FlowValue.opaque(table)
        writes.append(
          try write(
            KeptTables.changed + name, data.isSecret(key) ? .secret(value) : value,
            at: writes.count, shown))
      }
      for key in writtenKeys(in: data) {
        let name = try checked(data.keys.name(of: key))
        guard let value = data.get(key) else {
          writes.append(KeptWrite(name: name, bytes: nil))
          continue
        }
        if case .opaque(let table) = value {
          if let (other, mark) = places.place(of: table) {
            writes.append(try write(mark + name, .bytes(other), at: writes.count))
          } else {
            places.add(table, name, isSeen: false)
          }
        }
        noteFiles(of: key, value, at: writes.count)
        writes.append(
          try write(name, data.isSecret(key) ? .secret(value) : value, at: writes.count))
      }
    }
    // An item of a worker: other things that it may have set aren't known here.
    if end.data == nil { writes.append(KeptWrite(name: OpRecord.partMark, bytes: nil)) }
    for (key, value) in end.outputs {
      if value.isNull {
        if let key { writes.append(KeptWrite(name: loop.keys.name(of: key), bytes: nil)) }
        continue
      }
      if let key { noteFiles(of: key, value, at: writes.count) }
      let name = try key.map { try checked(loop.keys.name(of: $0)) } ?? KeptWrite.resultName
      writes.append(try write(name, value, at: writes.count))
    }
    for (number, undo) in end.undos.enumerated() {
      let what: ByteString = "the data of [\(undo.name)], which can be undone,"
      guard let text = KeptUndos.text(of: undo) else {
        throw FlowError(.error, "it has executed [\(undo.name)], which has an undo, by itself")
      }
      writes.append(
        try write(KeptUndos.name(of: number), .bytes(text), at: writes.count, what))
      for (key, value) in undo.data {
        let name = KeptUndos.name(of: number, key: loop.keys.name(of: key))
        writes.append(try write(name, value, at: writes.count, what))
      }
    }
    return writes
  }

  private func noteFiles(of key: DataKey, _ value: FlowValue, at place: Int) {
    guard let type = outputFiles.first(where: { $0.key == key })?.type else { return }
    made.append((place, type.files(in: value)))
  }

  /// A key's name, unless it is like those that stand for something else in a record.
  private func checked(_ name: ByteString) throws -> ByteString {
    guard name.bytes.first == 0 else { return name }
    throw FlowError(
      .error,
      "<\(name.escapingNUL)>, which it has set, begins with a NUL byte, as the store's own names do"
    )
  }

  /// The keys that the op has set, and those of its files: one that was there before may have another content now.
  private func writtenKeys(in data: DataBucket) -> [DataKey] {
    set.keys
      + outputFiles.map(\.key).filter { key in !set.contains(key) && data.has(key) }
  }

  /// The tables that it has changed, each once, with the place in `seen` where it has seen it first.
  private func changedTables(in data: DataBucket) -> [(place: Int, table: any OpaqueValue)] {
    var changed: [(place: Int, table: any OpaqueValue)] = []
    var identities: Set<UInt> = []
    for (place, seen) in seen.enumerated() {
      var table = seen.value
      var identity = seen.identity
      if !(table is any RefillableValue) {
        // A script that reads a table of Swift gets one of its own, from then on under the same key.
        guard !set.contains(seen.key), case .opaque(let present)? = data.get(seen.key),
          present is any RefillableValue
        else { continue }
        table = present
        identity = table.identity
      }
      if identities.contains(identity) { continue }
      if keeper.digest(of: .opaque(table)) != seen.digest {
        changed.append((place, table))
        identities.insert(identity)
      }
    }
    return changed
  }

  /// Notes that it has changed a table, which other ops may have seen.
  private func noteChange(of table: any OpaqueValue, at place: Int) {
    let seen = seen[place].value
    var isShared = keeper.share(seen) { $0.isRelated(to: self) }
    if seen !== table, keeper.share(table, besides: { $0.isRelated(to: self) }) { isShared = true }
    if isShared { shares(place) }
  }

  /// Another op changes a table meanwhile that it has seen: nobody knows what of it is whose.
  func shares(_ place: Int) { seen[place].isShared = true }

  /// Whether one executes within the other.
  func isRelated(to other: OpKeeping) -> Bool { isWithin(other) || other.isWithin(self) }

  func isWithin(_ other: OpKeeping) -> Bool {
    var next = outer
    while let keeping = next {
      if keeping === other { return true }
      next = keeping.outer
    }
    return false
  }

  /// A value that the op has set; the result of a step has no name.
  private func write(
    _ name: ByteString, _ value: FlowValue, at place: Int, _ described: ByteString? = nil
  ) throws -> KeptWrite {
    let usual: ByteString =
      name == KeptWrite.resultName ? "its result" : "<\(name)>, which it has set,"
    let what = described ?? usual
    let bytes: ByteString
    do {
      bytes = ByteString(try keeper.encode(value.plain))
    } catch {
      throw FlowError(.error, "\(what) can't be kept: \(FlowError.from(error).message)")
    }
    // Without secrets this is one comparison.
    guard value.isSecret || loop.secrets.redacted(bytes) != bytes else {
      return KeptWrite(name: name, bytes: bytes)
    }
    let isSecret = value.isSecret
    // A file's path is kept as it is, for reasons.
    guard !made.contains(where: { $0.write == place }),
      let sealed = try keeper.encrypt(bytes.bytes, isSecret: isSecret, name, record)
    else {
      throw FlowError(.error, "\(what) \(isSecret ? "is" : "contains the text of") a secret")
    }
    return KeptWrite(name: name, bytes: ByteString(sealed), isSecret: true)
  }
}

/// The tables that executing ops have seen, by their identities: each op is asked about those that others change.
struct TableSightings {
  private struct Sighting: Hashable {
    /// Not retained.
    let op: UnsafeMutableRawPointer
    let place: Int

    init(_ keeping: OpKeeping, at place: Int) {
      op = Unmanaged.passUnretained(keeping).toOpaque()
      self.place = place
    }
  }

  // Sets: items that execute at the same time may all see one table, and each forgets it.
  private var all: [UInt: Set<Sighting>] = [:]

  /// An op, which forgets it before it is released, has seen a table.
  mutating func add(_ identity: UInt, by keeping: OpKeeping, at place: Int) {
    all[identity, default: []].insert(Sighting(keeping, at: place))
  }

  mutating func forget(_ seen: [SeenTable], by keeping: OpKeeping) {
    for (place, table) in seen.enumerated() {
      all[table.identity]?.remove(Sighting(keeping, at: place))
      if all[table.identity]?.isEmpty == true { all[table.identity] = nil }
    }
  }

  /// The ops that have seen a table, each with the place where it notes that.
  func ops(thatHaveSeen table: any OpaqueValue) -> [(op: OpKeeping, place: Int)] {
    var ops: [(op: OpKeeping, place: Int)] = []
    for sighting in all[table.identity] ?? [] {
      let op = Unmanaged<OpKeeping>.fromOpaque(sighting.op).takeUnretainedValue()
      if op.seen[sighting.place].value.isSame(as: table) { ops.append((op, sighting.place)) }
    }
    return ops
  }
}

extension OpRecord {
  /// The name of a write without a value, in the record of an op of which only outputs were kept; no key has it.
  static let partMark: ByteString = "\u{0}part"

  /// Whether it has the output that the group of an item collects; nothing has to be there if all that the item has
  /// set was kept.
  func hasOutput(of work: KeptWork) -> Bool {
    guard let output = work.output, writes.contains(where: { $0.name == Self.partMark }) else {
      return true
    }
    let name = work.loop.keys.name(of: output)
    return writes.contains { $0.name == name }
  }
}

/// Which ops of a kept run are executed.
///
/// A name is an op's (`UploadOp`), an item's (`UploadOp #40`) or a step's of a machine (`order.pay`), or a path of such
/// names, from anywhere on (`publish/UploadOp #40`). It stands for all that executes within the op,
/// too.
package enum OpChoice {
  /// Those that aren't known to have finished with the same code and inputs.
  case changed
  /// None: what would be executed is only found out.
  case nothing
  /// Those with one of these names; the others have what they had set.
  case only([ByteString])
  /// The first one with this name, and all after it; those before it have what they had set.
  case from(ByteString)
}

extension KeptWork {
  /// Whether it is what a name stands for, or executes within that.
  func isWithin(_ name: ByteString) -> Bool {
    let names = names()
    return self.name == name || names.shown == name || names.path.isPath(within: name)
  }
}

extension OpRecord {
  /// Whether it is of what a name stands for, or of an op within that.
  package func isWithin(_ name: ByteString) -> Bool { op == name || path.isPath(within: name) }
}

extension ByteString {
  /// Whether it is the path of what a name stands for, or of an op within that.
  func isPath(within name: ByteString) -> Bool {
    let around: ByteString = "/\(self)/"
    // Without its number a name stands for all items of a group, and with it for an item with any label.
    let hasNumber = name.bytes.lastIndex(of: UInt8(ascii: "#")).map { sign in
      let digits = name.bytes[(sign + 1)...]
      return !digits.isEmpty && digits.allSatisfy(\.isDigit)
    }
    let item: ByteString = hasNumber == true ? " " : " #"
    return around.contains("/\(name)/") || around.contains("/\(name)\(item)")
  }
}
