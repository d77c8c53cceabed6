internal import FlowEngine

/// The keeping of one execution: it notes what the op reads and sets, and writes the record.
final class OpKeeping: KeptExecution {
  private let keeper: Keeper
  private var record: OpRecord
  let lineage: UInt64
  /// Keys whose values count as given: what is known needn't be noted again.
  private var known: Set<Key>
  private let given: [Key]
  private var set: [Key] = []
  private var isSet: Set<Key> = []
  /// The keys that it has read, in the order of `record.reads`.
  private var read: [Key] = []

  private let loop: EventLoop
  private let shownName: ByteString

  init(_ keeper: Keeper, _ record: OpRecord, lineage: UInt64, _ work: KeptWork) {
    self.keeper = keeper
    self.record = record
    self.lineage = lineage
    given = work.given
    known = Set(work.given)
    loop = work.loop
    shownName = work.shownName
  }

  var keepsStart: Bool { record.isOnce }

  /// Writes the start without waiting for it, unless that was done, or the end was written.
  func writeStart() {
    if record.id == 0 && record.ended == 0 { record.id = keeper.write(record) { _ in } }
  }

  func keepStart(then: @escaping (FlowError?) -> Void) {
    record.id = keeper.write(record, then: then)
  }

  func willRead(_ key: Key, in bucket: DataBucket) {
    guard known.insert(key).inserted else { return }
    let digest = keeper.digest(of: bucket.get(key))
    read.append(key)
    record.reads.append(KeptInput(name: bucket.keys.name(of: key), digest: digest))
  }

  func willSet(_ key: Key) {
    known.insert(key)
    if isSet.insert(key).inserted { set.append(key) }
  }

  func keepEnd(_ end: KeptEnd, then: @escaping (FlowError?) -> Void) {
    record.ended = Keeper.time(on: loop)
    record.attempt = end.attempt
    if let error = end.error {
      // Stopped after its start it may have had its effect: it stays as started.
      let isStopped = error.kind == .cancelled || error.kind == .timeout || error.kind == .stalled
      if record.isOnce, isStopped, end.attempt > 0 {
        then(nil)
        return
      }
      record.state = .failed
      record.error = loop.secrets.redacted(error.message)
      // Nothing depends on it: what isn't known to have finished is executed again.
      record.id = keeper.write(record) { _ in }
      then(nil)
      return
    }
    do {
      record.writes = try writes(of: end)
    } catch {
      let why = FlowError.from(error).message
      if record.isOnce {
        then(FlowError(.error, "[\(shownName)] is executed only once, but can't be kept: \(why)"))
      } else {
        keeper.warn(record.op, why)
        then(nil)
      }
      return
    }
    record.state = .finished
    if record.cacheKey != nil, let read = record.reads.first {
      record.cacheKey = nil
      keeper.warnOfCache(record.op, read.name)
    }
    record.id = keeper.write(record, then: then)
  }

  func keepUndone() {
    record.state = .undone
    record.writes = []
    record.id = keeper.write(record) { _ in }
  }

  /// The values that the op has set, and tables that it was given and has changed.
  private func writes(of end: KeptEnd) throws -> [KeptWrite] {
    for input in record.inputs where input.digest == .incomparable {
      throw FlowError(.error, "<\(input.name)>, which it was given, can't be compared")
    }
    for read in record.reads where read.digest == .incomparable {
      throw FlowError(.error, "<\(read.name)>, which it has read, can't be compared")
    }
    var writes: [KeptWrite] = []
    if let data = end.data {
      for key in changedKeys(in: data) {
        let name = data.keys.name(of: key)
        guard let value = data.get(key) else {
          writes.append(KeptWrite(name: name, bytes: nil))
          continue
        }
        writes.append(try write(name, data.isSecret(key) ? .secret(value) : value))
      }
    }
    for (key, value) in end.outputs where !value.isNull {
      writes.append(try write(key.map { loop.keys.name(of: $0) } ?? Keeper.resultName, value))
    }
    return writes
  }

  /// The keys that the op has set, and those of tables that it has changed in place.
  private func changedKeys(in data: DataBucket) -> [Key] {
    var keys = set
    for (place, key) in given.enumerated() where !isSet.contains(key) {
      if has(key, in: data, changedFrom: record.inputs[place].digest) { keys.append(key) }
    }
    for (place, key) in read.enumerated() where !isSet.contains(key) {
      if has(key, in: data, changedFrom: record.reads[place].digest) { keys.append(key) }
    }
    return keys
  }

  /// A value that the op has set; the result of a step has no name.
  private func write(_ name: ByteString, _ value: Value) throws -> KeptWrite {
    let what: ByteString = name == Keeper.resultName ? "its result" : "<\(name)>, which it has set,"
    if value.isSecret { throw FlowError(.error, "\(what) is a secret") }
    let bytes: ByteString
    do {
      bytes = ByteString(try keeper.encode(value))
    } catch {
      throw FlowError(.error, "\(what) can't be kept: \(FlowError.from(error).message)")
    }
    // Without secrets this is one comparison.
    if loop.secrets.redacted(bytes) != bytes {
      throw FlowError(.error, "\(what) contains the text of a secret")
    }
    return KeptWrite(name: name, bytes: bytes)
  }

  /// Whether a table has been changed in place.
  private func has(_ key: Key, in bucket: DataBucket, changedFrom digest: Digest) -> Bool {
    guard case .opaque? = bucket.get(key) else { return false }
    return keeper.digest(of: bucket.get(key)) != digest
  }
}
