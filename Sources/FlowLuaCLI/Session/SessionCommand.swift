/// A command to the session itself.
enum SessionCommand: Equatable {
  /// Leaves, as Ctrl-D does.
  case leave
  /// Runs a file as if its lines were typed.
  case load([UInt8])
  /// Writes the chunks so far to a file.
  case save([UInt8])
  /// Opens the last chunk, or a file's, in an editor, and runs the result.
  case edit

  /// nil for a line of Lua.
  ///
  /// - Parameters:
  ///   - line: The typed line.
  ///   - isDefined: Whether a variable has this name: a script may define its own `exit`.
  init?(_ line: [UInt8], isDefined: (String) -> Bool) {
    let isSpace = { (byte: UInt8) in byte == 32 || byte == 9 }
    var text = line[...]
    while let last = text.last, isSpace(last) { text.removeLast() }
    text = text.drop(while: isSpace)
    let word = String(decoding: text.prefix { !isSpace($0) }, as: UTF8.self)
    var rest = Array(text.dropFirst(word.utf8.count).drop(while: isSpace))
    // A name may be in quotes.
    if rest.count > 1, let quote = rest.first, quote == rest.last,
      quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
    {
      rest = Array(rest.dropFirst().dropLast())
    }
    switch word {
    case "exit", "quit", "exit()", "quit()":
      guard rest.isEmpty, !isDefined(String(word.prefix(4))) else { return nil }
      self = .leave
    case ".load": self = .load(rest)
    case ".save": self = .save(rest)
    case ".edit":
      guard rest.isEmpty else { return nil }
      self = .edit
    default: return nil
    }
  }
}
