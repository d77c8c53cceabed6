internal import FlowEngine

/// What a machine may report about secrets where others could read it. A script doesn't send any there.
struct RemoteSecrets {
  /// The error of an op whose secrets can't be sent.
  static let refusal = FlowError.usage(
    """
    a secret isn't sent without encryption, since others might read it: use a server with tls://, or FLOWLUA_REMOTE_KEY
    """)

  /// The secrets of the ops of this machine; nil where nobody else can read reports.
  private let texts: SecretTexts?

  /// - Parameters:
  ///   - settings: How this machine has joined.
  ///   - loop: Its loop, whose secrets are also those of its workers.
  init(_ settings: RemoteSettings, _ loop: EventLoop) {
    texts = settings.protectsSecrets ? nil : loop.secrets
  }

  /// What is reported of an event. Secrets in texts are replaced, as they are in a log.
  ///
  /// - Throws: `refusal` for a value that is secret.
  func reported(
    _ event: WorkerReport.JobEvent.What, of host: ScriptHost
  ) throws(FlowError) -> WorkerReport.JobEvent.What {
    guard let texts else { return event }
    switch event {
    case .set(_, .secret, _), .ended(_, result: .secret, _): throw Self.refusal
    case .log(let text): return .log(texts.redacted(text))
    case .ended(let error?, let result, let batch) where texts.count > 0:
      let plain = error.plain.with {
        $0.message = texts.redacted($0.message)
        $0.traceback = $0.traceback.map(texts.redacted)
        // These may have secrets in any form; so may the values of the script's own error.
        ($0.process, $0.request) = (nil, nil)
      }
      return .ended(WireError(plain, from: host), result: result, batch)
    default: return event
    }
  }
}
