internal import FlowEngine
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// The rules for secrets in messages of a script or a node, which others could read.
///
/// Values are refused that are secrets, or have one or the text of one in them; so is code that refers to a secret. In
/// texts, such as those of errors, secrets are replaced, as they are in a log.
struct RemoteSecrets {
  /// The error of an op whose secrets can't be sent.
  private static let refusal = FlowError.usage(
    """
    a secret isn't sent without encryption, since others might read it: use a server with tls://, or FLOWLUA_REMOTE_KEY
    """)

  /// The secrets of this process; nil where nobody else can read messages.
  private let texts: SecretTexts?

  /// - Parameters:
  ///   - settings: How this process has connected.
  ///   - loop: Its loop, whose secrets are also those of its workers.
  init(_ settings: RemoteSettings, _ loop: FlowEventLoop) {
    texts = settings.protectsSecrets ? nil : loop.secrets
  }

  /// The job as it may be sent.
  ///
  /// - Throws: `refusal` for one that has a secret.
  func sent(_ job: WorkerJob) throws(FlowError) -> WorkerJob {
    guard let texts, texts.exist else { return job }
    if job.code.package.hasSecrets || Self.reveals(job.arguments, texts) { throw Self.refusal }
    let kind: WorkerJob.Kind
    switch job.kind {
    case .op(var place):
      if Self.reveals(place.data, texts) || place.visible.contains(where: texts.occur(in:)) {
        throw Self.refusal
      }
      place.name = texts.redacted(place.name)
      place.endingError = place.endingError.map(sent)
      kind = .op(place)
    case .call(.task(let error?), let span): kind = .call(.task(sent(error)), span: span)
    case .call(.error(let error), let span): kind = .call(.error(sent(error)), span: span)
    case .call: return job
    }
    return WorkerJob(code: job.code, arguments: job.arguments, kind: kind)
  }

  /// The error as it may be sent.
  func sent(_ error: WireError) -> WireError {
    guard let texts, texts.exist else { return error }
    let plain = error.plain.replacingTexts(texts.redacted).with {
      // These may have secrets in any form; so may the values of the script's own error.
      ($0.process, $0.request) = (nil, nil)
    }
    return WireError(plain: plain, values: WireBatch(), fields: [], cause: nil)
  }

  /// The event as it may be reported.
  ///
  /// - Throws: `refusal` for a value that has a secret.
  func reported(
    _ event: WorkerReport.JobEvent.What
  ) throws(FlowError) -> WorkerReport.JobEvent.What {
    guard let texts, texts.exist else { return event }
    switch event {
    case .set(let key, let value, let batch):
      if texts.occur(in: key) || Self.reveals(batch, with: value, texts) { throw Self.refusal }
      return event
    case .ended(nil, result: let value, let batch):
      if Self.reveals(batch, with: value, texts) { throw Self.refusal }
      return event
    case .log(let text): return .log(texts.redacted(text))
    case .ended(let error?, _, _):
      return .ended(sent(error), result: .null, WireBatch())
    default: return event
    }
  }

  /// Whether one of these values is a secret, or has one in it or the text of one.
  private static func reveals(
    _ batch: WireBatch, with value: WireValue = .null, _ texts: SecretTexts
  ) -> Bool {
    if let buffer = batch.buffer, buffer.hasSecrets || texts.occur(in: ByteString(buffer.bytes)) {
      return true
    }
    return (batch.values + [value]).contains {
      switch $0 {
      case .secret: true
      case .bytes(let text): texts.occur(in: text)
      default: false
      }
    }
  }
}
