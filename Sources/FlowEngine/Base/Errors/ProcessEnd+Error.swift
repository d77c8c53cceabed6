internal import FlowSystem

extension ProcessEnd {
  /// The result of the program of `request`, or the reason why there is none or the program was
  /// stopped. No message shows a part of `secrets`.
  func result(
    of request: ProcessRequest, hiding secrets: SecretTexts
  ) -> Result<ProcessResult, FlowError> {
    switch self {
    case .exited(let result): return .success(result)
    case .stopped(let reason as ProcessOutOfReach, let result):
      let end = ProcessEnd.stopped(reason.reason, result).result(of: request, hiding: secrets)
      return end.mapError { error in
        error.with {
          $0.message = """
            \(error.message); \(request.commandText(hiding: secrets)) couldn't be ended and runs on as process \
            \(reason.pid): \(reason.problem)
            """
        }
      }
    case .stopped(let reason, let result):
      let error: FlowError
      switch reason {
      case let reason as ProcessTimeout: error = .timeout(after: reason.limit)
      case let reason as ProcessOutputLimit:
        error = FlowError(
          .memory,
          """
          \(request.commandText(hiding: secrets)) was stopped: its output exceeds the memory limit of \
          \(reason.limit) bytes
          """)
      default: error = .from(reason)
      }
      return .failure(result.map { error.carrying($0, hiding: secrets) } ?? error)
    case .failed(let error): return .failure(.from(error))
    case .refused(let problem): return .failure(.usage(problem))
    case .lost:
      let text: ByteString = """
        the status of \(request.commandText(hiding: secrets)) is lost: something else in this process \
        has taken it, or ignores SIGCHLD
        """
      return .failure(FlowError(.error, text))
    }
  }
}

extension ChildProcess {
  /// Stops the program and its child processes, as `cancel(because:)`.
  ///
  /// - Parameter error: The error that it ends with.
  public func cancel(_ error: FlowError) { cancel(because: error) }
}

extension ProcessResult {
  /// The error for a status other than 0, whose message shows no part of `secrets`.
  func failure(of request: ProcessRequest, hiding secrets: SecretTexts) -> FlowError? {
    guard status != 0 else { return nil }
    var message = request.commandText(hiding: secrets)
    if let signal {
      let name = strsignal(Int32(signal)).map { String(cString: $0) } ?? "unknown"
      message = message + " was ended by signal \(signal) (\(name))"
    } else {
      message = message + " exited with status \(status)"
    }
    return FlowError(
      .error, message + lastErrorLine(hiding: secrets), code: Int64(status), process: self)
  }

  /// The last line of the error output, after `: `; empty when there is no output.
  fileprivate func lastErrorLine(hiding secrets: SecretTexts) -> ByteString {
    lastErrorLines(1, hiding: secrets).last.map { ": " + $0 } ?? ""
  }

  /// The last lines of the error output that have text, of each the last 400 bytes.
  fileprivate func lastErrorLines(_ count: Int, hiding secrets: SecretTexts) -> [ByteString] {
    let isSpace = { (byte: UInt8) in byte == 32 || (9...13).contains(byte) }
    let end = stderrEnd.bytes.lastIndex { !isSpace($0) } ?? -1
    let text = secrets.redacted(ByteString(stderrEnd.bytes[...end]))
    let lines = text.bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    return lines.suffix(count).map { line in
      let limit = 400
      guard line.count > limit else { return ByteString(line) }
      // The cut must not be in the middle of a character.
      return "…" + ByteString(line.suffix(limit).drop { $0 & 0xC0 == 0x80 })
    }
  }
}

extension FlowError {
  /// The last five lines of the error output of its program, each in a line of its own with an indent; empty where the
  /// message already has the only one.
  package func programLines(hiding secrets: SecretTexts) -> ByteString {
    guard let lines = process?.lastErrorLines(5, hiding: secrets), lines.count > 1 else {
      return ""
    }
    return lines.reduce("") { $0 + "\n    " + $1 }
  }

  /// The other errors, each in a line of its own, `also [nightly/UploadOp] no route to host`; of many the first ones.
  package var otherLines: ByteString {
    let most = 20
    let lines = others.prefix(most).reduce("") { "\($0)\nalso \($1.text)" }
    return others.count > most ? "\(lines)\nand \(others.count - most) more" : lines
  }

  /// The error of a program that was stopped because of it, with the output of the program.
  func carrying(_ result: ProcessResult, hiding secrets: SecretTexts) -> FlowError {
    with {
      $0.message = message + result.lastErrorLine(hiding: secrets)
      $0.process = result
    }
  }
}

extension ProcessRequest {
  /// The command as messages show it, without secrets: words with special characters are quoted.
  func commandText(hiding secrets: SecretTexts) -> ByteString {
    let words = argv.map { word in
      let isPlain = !word.isEmpty && word.bytes.allSatisfy { Self.plain.contains($0) }
      return isPlain ? word : "'\(word.escapingNUL)'"
    }
    let text = ByteString(words.map(\.bytes).joined(separator: [UInt8(ascii: " ")]))
    return secrets.redacted(text).truncated(to: FlowValue.logLimit)
  }

  private static let plain = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%^".bytes)
}
