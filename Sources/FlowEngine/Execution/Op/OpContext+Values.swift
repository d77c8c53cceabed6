// Typed access for Swift.
extension OpContext {
  /// The value under `name` as a Swift type; fails the op and throws when it is of another type, or when
  /// there is none: as an optional, such as `String?.self`, an absent value is nil.
  ///
  /// ```swift
  /// let name = try context.value("name", as: String.self)
  /// let age = try context.value("age", as: Int?.self)
  /// ```
  public func value<Wanted: FlowValueConvertible>(
    _ name: some FlowText, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let error: FlowError
    let key = bucket.keys.intern(name)
    if let value = get(key) {
      if let result = Wanted(flowValue: value) { return result }
      error = .mismatchedInput(
        name.byteString, bucket.shown(value, of: key), wanted: ByteString(Wanted.flowTypeName),
        hiding: bucket.keys.secrets)
    } else {
      if let absent = absent(as: type) { return absent }
      error = bucket.missingInput(key)
    }
    throw failing(error)
  }

  /// The value under `name` as anything `Decodable`; fails the op and throws when there is none, or
  /// one that the type can't be made of. The error names the path of the part and what the type
  /// expects there. As an optional, an absent value is nil.
  @_disfavoredOverload
  public func value<Wanted: Decodable>(
    _ name: some FlowText, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let key = bucket.keys.intern(name)
    let found = get(key)
    do {
      return try (found ?? .null).decoded(as: type)
    } catch {
      throw failing(
        found.map { bucket.mismatchedInput(key, $0, error) } ?? bucket.missingInput(key))
    }
  }

  /// The Swift object under `name`, which was stored with `FlowValue.object`; fails the op and throws
  /// when there is none, or one of another type. As an optional, an absent object is nil.
  public func object<Wanted>(
    _ name: some FlowText, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let key = bucket.keys.intern(name)
    guard let found = get(key) else {
      if let absent = absent(as: type) { return absent }
      throw failing(bucket.missingInput(key))
    }
    guard let object = found.object(as: type) else {
      throw failing(
        .mismatchedInput(
          name.byteString, bucket.shown(found, of: key),
          wanted: ByteString(String(describing: type)),
          hiding: bucket.keys.secrets))
    }
    return object
  }

  /// The absence of a value as an optional type; nil for any other type.
  private func absent<Wanted>(as type: Wanted.Type) -> Wanted? {
    (type as? any StandardOptional.Type)?.absent as? Wanted
  }

  /// Stores and logs anything `Encodable`. Has no effect after the op has settled.
  ///
  /// - Throws: A `FlowError` with the path of the part that has no form in a bucket.
  @_disfavoredOverload
  public func set(_ name: some FlowText, _ content: some Encodable) throws(FlowError) {
    let value: FlowValue
    do { value = try FlowValue(encoding: content) } catch {
      throw .unencodable(name.byteString, error)
    }
    set(bucket.keys.intern(name), value)
  }

  /// Stores and logs a Swift value. Has no effect after the op has settled.
  ///
  /// ```swift
  /// context.set("url", "https://example.com/cat.png")
  /// ```
  public func set(_ name: some FlowText, _ value: some FlowValueConvertible) {
    set(bucket.keys.intern(name), value.flowValue)
  }

  /// Stores and logs a value; `.null` removes the key. Has no effect after the op has settled.
  public func set(_ name: some FlowText, _ value: FlowValue) {
    set(bucket.keys.intern(name), value)
  }
}

// The facts that a kept run has to know of an op, and its lines about it.
extension OpContext {
  /// The data that the op works on, for code that reads a key of it by other means than `get`: a kept run
  /// has to know all that an op reads.
  package func bucket(reading key: DataKey) -> DataBucket {
    if keeping != nil { willRead(key) }
    return bucket
  }

  /// Whether a kept run has to know what the op reads of the data of a run: its own, or one of those around it.
  package func notesReads(of run: Run) -> Bool {
    guard keeping != nil, isOpen else { return false }
    var next: Run? = self.run
    while let each = next {
      if each === run { return true }
      next = each.outer?.run
    }
    return false
  }

  /// Called before code of the op reads a key of such a run's data by other means than `get`.
  package func willRead(_ key: DataKey, of run: Run) {
    guard notesReads(of: run), let execution else { return }
    if run !== self.run { return noteOutsideRead(of: run, key) }
    // Where the op has other data under that name, it isn't known what to compare with.
    let isOwn = execution.bucket.inherits(key, from: run.data)
    execution.noteRead(isOwn ? key : run.data.keys.intern(KeptWork.hiddenData))
  }

  /// Called before code of the op reads all of such a run's data, or of its events.
  package func willReadAll(of run: Run) {
    guard notesReads(of: run) else { return }
    for entry in run.data.entries { willRead(entry.key, of: run) }
    let names = run.data.keys.intern(KeptWork.dataNames)
    if run === self.run { execution?.noteRead(names) } else { noteOutsideRead(of: run, names) }
  }

  @inline(never)
  func willRead(_ key: DataKey) {
    guard isOpen, let execution else { return }
    execution.noteRead(key)
    // Code of an op within this one may do that, by the context of this one.
    if let reader = execution.loop.codeContext?(), reader !== self {
      reader.noteOutsideRead(of: run, nil)
    }
  }

  /// Notes that the op reads data of an op around it, which does that too if it gets a key. The result is for the
  /// execution of that op only, and so are those of ops in between.
  private func noteOutsideRead(of run: Run, _ key: DataKey?) {
    let outside = run.data.keys.intern(KeptWork.outsideData)
    execution?.noteRead(outside)
    var inner = self.run
    while inner !== run, let outer = inner.outer?.run {
      if outer !== run {
        inner.outerKeeping?.willRead(outside, in: outer.data)
      } else if let key {
        inner.outerKeeping?.willRead(key, in: run.data)
      }
      inner = outer
    }
  }

  /// Adds the line of an op that isn't executed, because a kept run has its result.
  func logKept(_ text: ByteString) {
    guard let execution, !isSettled else { return }
    execution.log.append(
      .kept, time: execution.loop.now(), scope: scope, position: position, attempt: attempt,
      first: execution.log.payload(text))
  }
}
