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
    // Where the op has other data under that name, it isn't known what to compare with.
    let isOwn = execution.bucket.inherits(key, from: run.data)
    execution.noteRead(isOwn ? key : run.data.keys.intern(KeptWork.otherData))
  }

  /// Called before code of the op reads all of such a run's data, or of its events.
  package func willReadAll(of run: Run) {
    guard notesReads(of: run), let execution else { return }
    for entry in run.data.entries { willRead(entry.key, of: run) }
    let name = run === self.run ? KeptWork.dataNames : KeptWork.otherData
    execution.noteRead(run.data.keys.intern(name))
  }

  @inline(never)
  func willRead(_ key: DataKey) {
    if isOpen { execution?.noteRead(key) }
  }

  /// Adds the line of an op that isn't executed, because a kept run has its result.
  func logKept(_ text: ByteString) {
    guard let execution, !isSettled else { return }
    execution.log.append(
      .kept, time: execution.loop.now(), scope: scope, position: position, attempt: attempt,
      first: execution.log.payload(text))
  }
}
