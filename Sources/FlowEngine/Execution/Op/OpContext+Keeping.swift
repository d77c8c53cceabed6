// What a kept run has to know of an op, and says about it.
extension OpContext {
  /// The data that the op works on, for code that reads a key of it by other means than `get`: a kept run
  /// has to know all that an op reads.
  package func bucket(reading key: DataKey) -> DataBucket {
    if keeping != nil { willRead(key) }
    return bucket
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
