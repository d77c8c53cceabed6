/// A part of the standard input to read; the parts are those of Lua's `io.read`.
package enum InputFormat: Sendable {
  /// A line, with its newline or without.
  case line(keepsNewline: Bool)
  /// The text of a number, after white space.
  case number
  /// Everything up to the end.
  case all
  /// At most so many bytes; 0 asks for the end.
  case bytes(Int)
}

/// A request to read the standard input.
package final class InputRead {
  /// The outcome of a part.
  package enum Part: Sendable {
    /// A line, or a number of bytes.
    case bytes(ByteString)
    /// The text of a number.
    case number(ByteString)
    /// There was nothing left, or no number.
    case end
  }

  /// The parts to read.
  let formats: [InputFormat]
  /// The outcome of each part so far; the first one without a value is the last.
  package internal(set) var parts: [Part] = []
  /// The error that ended the request, if any.
  package internal(set) var problem: SystemError?
  /// The bytes of `parts`, which go back if the request is cancelled or its outcome isn't used.
  var taken: [UInt8] = []
  private(set) var completion: (() -> Void)?

  /// Makes a request.
  ///
  /// - Parameters:
  ///   - formats: The parts to read.
  ///   - completion: Called once at the end, on the loop's thread, unless `StandardInput.start` has
  ///     returned true.
  package init(_ formats: [InputFormat], completion: @escaping () -> Void) {
    self.formats = formats
    self.completion = completion
  }

  /// The next part to read; nil when all is done.
  var next: InputFormat? {
    if case .end? = parts.last { return nil }
    return problem == nil && parts.count < formats.count ? formats[parts.count] : nil
  }

  func end() {
    let report = completion
    completion = nil
    report?()
  }
}
