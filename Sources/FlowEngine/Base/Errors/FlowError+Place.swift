extension FlowError {
  /// A place in a script, such as `acme.lua:12`.
  ///
  /// ```swift
  /// if let place = run.error?.place { print("\(place.file), line \(place.line)") }
  /// ```
  public struct Place: Hashable, Sendable, CustomStringConvertible {
    /// The name of the script: its path, or the name that its text was loaded with.
    public let file: ByteString
    /// The line, from 1.
    public let line: Int
    /// The byte in the line, from 1, at which a syntax error was found; nil for other errors.
    public let column: Int?

    /// `acme.lua:12`, and `acme.lua:12:7` with a column.
    public var description: String {
      "\(file):\(line)" + (column.map { ":\($0)" } ?? "")
    }

    /// The place that a text begins with, if `end` follows it; nil if there is none.
    fileprivate init?(before end: ByteString, in text: ByteString, column: Int? = nil) {
      // Names of texts may contain anything, but are short.
      var rest = text.bytes.prefix(200)
      var start = rest.startIndex
      while let found = rest.place(of: end)?.lowerBound {
        let candidate = text.bytes[text.bytes.startIndex..<found]
        if let colon = candidate.lastIndex(of: UInt8(ascii: ":")), colon > candidate.startIndex,
          let line = Int(String(decoding: candidate[(colon + 1)...], as: UTF8.self)), line > 0
        {
          file = ByteString(candidate[..<colon])
          self.line = line
          self.column = column
          return
        }
        start = found + end.count
        rest = rest[start...]
      }
      return nil
    }

    /// The place of the innermost code of a script in a traceback.
    fileprivate init?(traceback: ByteString) {
      for line in traceback.bytes.split(separator: UInt8(ascii: "\n")) {
        guard line.first == UInt8(ascii: "\t") else { continue }
        if let place = Place(before: ": in ", in: ByteString(line.dropFirst())) {
          self = place
          return
        }
      }
      return nil
    }

    fileprivate var start: ByteString { "\(file):\(line):" }
  }

  /// The code of a script in which the error happened: that which has raised it, has called the Swift code that threw it,
  /// or was stopped; of a syntax error the place in the text. nil if it isn't known, as for an error outside of scripts.
  public var place: Place? {
    if let stop = stopPlace { return Place(before: ", in ", in: stop + ", in ") }
    if let traceback {
      // A script may blame its caller: `error(message, 2)`.
      if let place = Place(before: ": ", in: message), traceback.contains("\t" + place.start) {
        return place
      }
      if let place = Place(traceback: traceback) { return place }
    }
    guard isMessageOfLua else { return nil }
    return Place(before: ": ", in: message, column: details.column)
  }

  private var isMessageOfLua: Bool { details.isMessageOfLua }
}
