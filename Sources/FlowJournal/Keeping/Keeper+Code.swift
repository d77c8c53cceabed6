internal import FlowEngine

// The parts of an op's code, and which of them have changed.
extension Keeper {
  /// Has what new code consists of written, once for each code.
  func noteCode(_ digest: Digest, _ work: KeptWork) {
    guard let kept, !isEnded, let code, code.digest == digest,
      changes.written.insert(digest).inserted
    else { return }
    let details = details(of: code, work)
    if !details.isEmpty { kept.write(KnownCode(code: digest, details: details)) }
  }

  /// The differences of code, in words; nil when only the op's own function differs, or nothing is known.
  func codeChange(from known: Digest, to digest: Digest, _ work: KeptWork) -> ByteString? {
    let pair = CodeChanges.Pair(before: known, now: digest)
    if let change = changes.found[pair] { return change }
    let before = (try? store.codes.details(of: known, in: store.row(of: id).number)) ?? []
    let now = code.map { $0.digest == digest ? details(of: $0, work) : [] } ?? []
    let change = before.isEmpty || now.isEmpty ? nil : KnownCode.change(from: before, to: now)
    changes.found[pair] = .some(change)
    return change
  }

  private func details(of code: KeptCode, _ work: KeptWork) -> [KnownCode.Detail] {
    // Without them only less can be said.
    guard let details = try? code.details() else { return [] }
    return details.compactMap { detail in
      switch detail.content {
      case .shown(let text):
        KnownCode.Detail(
          name: detail.name, content: .shown(work.loop.secrets.redacted(text)))
      case .hidden(let bytes):
        (try? store.digest(of: bytes)).map { .init(name: detail.name, content: .hidden($0)) }
      }
    }
  }
}
