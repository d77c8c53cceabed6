extension ChildProcess {
  /// Writes to the standard input of a program with the input `.pipe`. All bytes are taken at once,
  /// whatever the result.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - writer: The object to call when the result is `.later`.
  /// - Returns: The outcome.
  package func write(_ bytes: ByteString, for writer: any ProcessInputWriter) -> InputWritten {
    let outcome = input?.write(bytes, for: writer) ?? .closed
    // It may be paused because of lines, which the writer can't take now.
    if outcome == .later { resume() }
    return outcome
  }

  /// Removes a writer that was to be called.
  package func cancelWrite(_ writer: any ProcessInputWriter) { input?.cancel(writer) }

  /// Ends the standard input, after the bytes that were written.
  package func closeInput() { input?.endAfterBytes() }
}
