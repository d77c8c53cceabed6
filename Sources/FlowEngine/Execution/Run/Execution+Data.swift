/// What an op stores, and whether that is what it has declared.
extension Execution {
  /// The error of a value that the op should have set.
  func outputError(of op: Op) -> FlowError? {
    // Most ops declare nothing.
    guard op.hasGives || isCollected else { return nil }
    if op.hasGives {
      let isKept = unretained(op.declarations) { declarations in
        unretained(bucket) { declarations.clearlyKeepsGives($0) }
      }
      if !isKept, let error = checking({ op.declarations.outputError(in: bucket) }) {
        return error
      }
    }
    guard frames.isEmpty, let memberOf else { return nil }
    // Safe: the execution holds its bucket, and its group, which holds the execution, is held as long.
    return memberOf.lend { group in
      unretained(bucket) { group.collectError(in: $0) }
    }
  }

  /// Stores a value in the execution's bucket and logs it, unless the bucket is that of an item.
  /// `time` is when it happened, if not now.
  func store(
    _ key: DataKey, _ value: FlowValue, scope: UInt32, position: UInt32, attempt: Int,
    at time: Int64? = nil
  ) {
    if run.keeper != nil { noteSet(key) }
    // Unretained. Safe: storing replaces no bucket.
    let old = Unmanaged.passUnretained(bucket).lend { $0.set(key, value) }
    guard log.hasSecrets || value.isSecret else {
      logSet(
        key, value, replacing: old, scope: scope, position: position, attempt: attempt, at: time)
      return
    }
    let shown = log.shown(value, of: key, in: bucket)
    let oldShown = old.map { log.shown($0, of: key, in: bucket) }
    logSet(
      key, shown, replacing: oldShown, scope: scope, position: position, attempt: attempt, at: time)
  }

  @inline(__always)
  private func logSet(
    _ key: DataKey, _ value: FlowValue, replacing old: FlowValue?, scope: UInt32, position: UInt32,
    attempt: Int, at time: Int64?
  ) {
    if !logsSets || (old == nil && value.isNull) { return }
    let kind: LogKind = value.isNull ? .remove : old == nil ? .add : .replace
    let time = time ?? engine.stampedNow()
    // Unretained. Safe: the run holds its log, and the execution its run.
    Unmanaged.passUnretained(log).lend {
      $0.append(
        kind, time: time, scope: scope, position: position, key: key.id, attempt: attempt,
        first: $0.payload(value), second: $0.payload(old), value: value)
    }
  }
}
