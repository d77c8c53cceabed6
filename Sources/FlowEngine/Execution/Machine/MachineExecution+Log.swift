// The state in the lines of the log.
extension MachineExecution {
  /// The state for a line of the log, unless it equals the state in the latest line.
  @inline(__always)
  func changedState(_ context: OpContext) -> Payload? {
    let payload: Payload
    switch state {
    case .integer(let value): payload = .integer(value)
    case .number(let value): payload = .number(value)
    case .boolean(let value): payload = Payload(tag: value ? .truth : .falsehood, bits: 0)
    case .null: payload = .none
    case .bytes, .opaque: return changedText(context)
    }
    if context.run.log.hasSecrets { return changedText(context) }
    if payload.tag == shownState.tag, payload.bits == shownState.bits, shownText == nil {
      return nil
    }
    shownState = payload
    if shownText != nil { shownText = nil }
    return payload
  }

  @inline(never)
  private func changedText(_ context: OpContext) -> Payload? {
    let log = context.run.log
    var shown = state
    // Fields that came from secrets are secret, however short they are.
    if log.hasSecrets, let fields = try? logic.outputs(of: state),
      fields.contains(where: { isSecret($0.0, context) })
    {
      shown = .opaque(
        MapValue(fields.map { ($0.0, isSecret($0.0, context) ? .secret($0.1) : $0.1) }))
    }
    let text = log.secrets?.redactedText(of: shown) ?? shown.logText
    if text == shownText { return nil }
    shownText = text
    return log.payload(text)
  }

  /// Whether a key or a field of the state has a secret value.
  func isSecret(_ name: ByteString, _ context: OpContext) -> Bool {
    secretNames.contains(name)
      || context.run.log.hasSecrets && context.bucket.isSecret(loop.keys.intern(name))
  }
}
