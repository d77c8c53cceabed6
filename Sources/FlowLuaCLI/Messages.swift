internal import FlowEngine
internal import FlowScripting
internal import LuaVM

/// Reports errors on stderr, as the stand-alone interpreter does.
final class Messages {
  /// What stands before each message; nil while lines are asked for.
  var program: ByteString?
  /// Knows the texts of errors that ops raise, once there is one.
  // Not weak: a weak reference would make every retain of the host slower. Both live as long as the
  // process.
  var host: ScriptHost?
  /// How errors are shown to a person; nil: as they are.
  var decorate: ((ByteString) -> ByteString)?
  /// The first line of the error that was reported last.
  private(set) var lastError: ByteString = ""

  init(program: ByteString) {
    self.program = program
  }

  /// Reports an error that ended a chunk.
  func report(_ error: any Error) {
    let text = text(of: error)
    lastError = ByteString(Array(text.bytes.prefix { $0 != UInt8(ascii: "\n") }))
    Output.error(program: program, decorate?(text) ?? text)
  }

  /// Reports a failure that nobody observed.
  func report(_ error: FlowError, of name: ByteString) {
    let text: ByteString = "\(name) failed: \(text(of: error))"
    Output.error(program: program, decorate?(text) ?? text)
  }

  /// Reports the failures that nobody observed; returns whether there is one.
  @discardableResult
  func reportFailures(of host: ScriptHost) -> Bool {
    let failures = host.unobservedFailures()
    for failure in failures { report(failure.error, of: failure.name) }
    return !failures.isEmpty
  }

  /// Says something that is no error of the script.
  func say(_ message: ByteString) { Output.error(program: program, message) }

  private func text(of error: any Error) -> ByteString {
    if let host { return host.report(of: error) }
    if let error = error as? LuaError { return ByteString(error.message.bytes) }
    return ByteString(String(describing: error))
  }
}
