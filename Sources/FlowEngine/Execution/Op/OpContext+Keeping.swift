// What a kept run has to know of an op, and says about it.
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
