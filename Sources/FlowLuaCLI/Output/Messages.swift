internal import FlowEngine
internal import FlowScripting
internal import LuaVM

/// Reports errors on stderr, as the stand-alone interpreter does.
final class Messages {
  /// The prefix of each message; nil in a session.
  var program: ByteString?
  /// The texts of errors that ops raise, once there is a host.
  // Not weak: a weak reference would make every retain of the host slower. Both live as long as the
  // process.
  var host: ScriptHost?
  /// How errors are shown to a person; nil: unchanged.
  var decorate: ((ByteString) -> ByteString)?
  /// The first line of the most recently reported error.
  private(set) var lastError: ByteString = ""
  /// Whether an error of Ctrl-C was reported.
  private(set) var hasReportedInterruption = false

  init(program: ByteString) {
    self.program = program
  }

  /// Reports an error that ended a chunk.
  func report(_ error: any Error) {
    let text = text(of: error)
    lastError = firstLine(of: text)
    Output.error(program: program, text, style: decorate)
  }

  /// Reports the unobserved failures that haven't been reported; returns whether there is one. Those of hundreds of tasks
  /// may be the same, as at a limit: then one line says how often.
  @discardableResult
  func reportFailures(of host: ScriptHost) -> Bool {
    var counts: [ByteString: Int] = [:]
    let texts = host.takeUnobservedFailures().map { failure in
      let text: ByteString =
        "\(host.loop.secrets.redacted(failure.name)) failed: \(text(of: failure.error))"
      counts[text, default: 0] += 1
      return text
    }
    for text in texts {
      guard let count = counts.removeValue(forKey: text) else { continue }
      Output.error(program: program, count > 1 ? "\(count) times: \(text)" : text, style: decorate)
    }
    return !texts.isEmpty
  }

  private func firstLine(of text: ByteString) -> ByteString {
    ByteString(text.bytes.prefix { $0 != UInt8(ascii: "\n") })
  }

  /// Reports that Ctrl-C, or what counts as it, has ended the script.
  func reportInterruption(_ message: ByteString) {
    hasReportedInterruption = true
    say(message)
  }

  /// Prints a message that isn't an error of the script.
  func say(_ message: ByteString) { Output.error(program: program, message) }

  private func text(of error: any Error) -> ByteString {
    guard let host else {
      if let error = error as? LuaError { return ByteString(error.message.bytes) }
      return ByteString(String(describing: error))
    }
    let text = host.report(of: error)
    let interruption = "interrupted!".bytes
    if firstLine(of: text).bytes.suffix(interruption.count).elementsEqual(interruption) {
      hasReportedInterruption = true
    }
    return text
  }
}
