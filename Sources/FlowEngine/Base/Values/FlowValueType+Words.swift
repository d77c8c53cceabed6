/// Values of a type as words, such as those of a command line.
extension FlowValueType {
  /// How a value is written.
  package enum Wording {
    /// By its name alone: true.
    case flag
    /// As one word.
    case word
    /// As a word for each element.
    case words
  }

  /// How values of the type are written; nil if they can't be, as functions and tables.
  package var wording: Wording? {
    switch shape {
    case .any, .literal, .builtin(.string), .builtin(.integer), .builtin(.number), .builtin(.float),
      .builtin(.file):
      .word
    case .builtin(.boolean): .flag
    case .list(let element): element.isWord ? .words : nil
    case .union(let members):
      members.contains { $0.isWord } ? .word : members.lazy.compactMap(\.wording).first
    case .builtin, .named, .map, .record, .predicate, .stream: nil
    }
  }

  private var isWord: Bool { wording == .word || wording == .flag }

  /// The value that a word stands for or, for a list, the element; nil if it stands for none. Of several types the first one
  /// that has such a value counts.
  package func value(of word: ByteString) -> FlowValue? {
    switch shape {
    case .any, .builtin(.string): .bytes(word)
    case .builtin(.file): Self.fileProblem(word) == nil ? .bytes(word) : nil
    case .builtin(.boolean):
      word == "true" ? .boolean(true) : word == "false" ? .boolean(false) : nil
    case .builtin(.integer): Self.integer(word)
    case .builtin(.number): Self.integer(word) ?? Self.float(word)
    case .builtin(.float): Self.float(word)
    case .literal(.integer(let number)):
      Self.integer(word) == .integer(number) ? .integer(number) : nil
    case .literal(let literal): .bytes(word) == literal ? literal : nil
    case .list(let element): element.value(of: word)
    case .union(let members): members.lazy.compactMap { $0.value(of: word) }.first
    case .builtin, .named, .map, .record, .predicate, .stream: nil
    }
  }

  /// The name of the type of a word, with the reason why one isn't of it if that is about a file.
  package func expected(insteadOf word: ByteString) -> ByteString {
    if case .list(let element) = shape { return element.expected(insteadOf: word) }
    return hasFiles ? present.nameWithReason(.bytes(word)) : present.name
  }

  /// The only words that there are for a value; empty if there are others.
  package var choices: [ByteString] {
    switch shape {
    case .literal(.bytes(let text)): return [text]
    case .literal(.integer(let number)): return ["\(number)"]
    case .list(let element): return element.choices
    case .union(let members):
      let parts = members.map(\.choices)
      return parts.contains { $0.isEmpty } ? [] : parts.flatMap { $0 }
    default: return []
    }
  }

  /// The type with only these values, strings and integers, or with only these elements.
  package func limited(to values: [FlowValue]) -> FlowValueType {
    let made: FlowValueType
    if case .list(let element) = shape {
      made = element.limited(to: values).list
    } else {
      let members = values.map { value in
        let name: ByteString =
          if case .bytes(let text) = value { "\"\(text)\"" } else { value.logText }
        return FlowValueType(name: name, isOptional: false, shape: .literal(value))
      }
      made = Self.union(members) ?? self
    }
    return FlowValueType(
      name: isOptional ? made.name + "?" : made.name, isOptional: isOptional, shape: made.shape)
  }

  private static func integer(_ word: ByteString) -> FlowValue? {
    Int64(word.description).map { .integer($0) }
  }

  /// Decimal only: neither `nan` nor `0x10`.
  private static func float(_ word: ByteString) -> FlowValue? {
    guard word.bytes.allSatisfy({ "+-.0123456789eE".bytes.contains($0) }),
      let number = Double(word.description), number.isFinite
    else { return nil }
    return .number(number)
  }
}
