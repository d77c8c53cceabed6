internal import FlowEngine

/// The words of a command line, as the commands of a script understand them.
struct CommandWords {
  /// A mistake in the words, as a sentence.
  struct Mistake: Error {
    let message: ByteString
  }

  /// A value in words, or several of a list.
  struct Given {
    let parameter: Command.Parameter
    var values: [FlowValue]
  }

  /// The outcome of reading.
  enum Outcome {
    /// The help of a command; nil: of the script.
    case help(Command?)
    case start(Command, [Given])
  }

  let commands: [Command]

  func read(_ words: [ByteString]) throws(Mistake) -> Outcome {
    if let only = commands.first, only.name == nil { return try read(words[...], for: only) }
    guard let first = words.first, !Self.isHelp(first) else { return .help(nil) }
    if let command = commands.first(where: { $0.name == first }) {
      return try read(words.dropFirst(), for: command)
    }
    let what = first.hasPrefix("-") ? "a command comes before the option" : "unknown command"
    throw Mistake(message: "\(what) '\(first)'\(Self.hint(first, commands.compactMap(\.name)))")
  }

  private static func isHelp(_ word: ByteString) -> Bool { word == "--help" || word == "-h" }

  /// ` (did you mean '--version'?)`, or the names that there are.
  private static func hint(_ word: ByteString, _ names: [ByteString]) -> ByteString {
    if let near = NearestName.of(word, in: names) { return " (did you mean '\(near)'?)" }
    if names.isEmpty { return "" }
    return "; there are " + names.dropFirst().reduce(names[0]) { "\($0), \($1)" }
  }

  private func read(
    _ words: ArraySlice<ByteString>, for command: Command
  ) throws(Mistake) -> Outcome {
    var reader = Reader(command: command, rest: words)
    if try reader.readAll() { return .help(command) }
    return .start(command, try reader.complete())
  }

  /// Reads the words of one command.
  private struct Reader {
    let command: Command
    var rest: ArraySlice<ByteString>
    var given: [Given] = []

    /// Reads all words; returns whether they ask for help.
    mutating func readAll() throws(Mistake) -> Bool {
      var areOptionsOver = false
      while let word = rest.popFirst() {
        if areOptionsOver || !Self.isOption(word) {
          guard let primary = command.primary else {
            throw Mistake(message: "'\(word)' is too much: there are only options")
          }
          if primary.wording != .words, given.contains(where: { $0.parameter.key == primary.key }) {
            throw Mistake(message: "'\(word)' is too much: <\(primary.name)> is given already")
          }
          try give(primary, word, as: "<\(primary.name)>")
        } else if word == "--" {
          areOptionsOver = true
        } else if CommandWords.isHelp(word) {
          return true
        } else {
          try readOption(word)
        }
      }
      return false
    }

    /// A negative number isn't one.
    private static func isOption(_ word: ByteString) -> Bool {
      let bytes = word.bytes
      return bytes.count > 1 && bytes[0] == 45 && !(48...57).contains(bytes[1]) && bytes[1] != 46
    }

    private mutating func readOption(_ word: ByteString) throws(Mistake) {
      let end = word.bytes.firstIndex(of: UInt8(ascii: "=")) ?? word.count
      let option = ByteString(word.bytes[..<end])
      let value = end < word.count ? ByteString(word.bytes[(end + 1)...]) : nil
      if let parameter = command.parameters.first(where: { option == "--\($0.name)" }) {
        if parameter.wording == .flag, value == nil {
          return try add(parameter, .boolean(true), option)
        }
        let next = rest.first.flatMap { $0.hasPrefix("--") ? nil : $0 }
        guard let text = value ?? next else {
          throw Mistake(message: "option '\(option)' needs a value: \(option) \(parameter.form)")
        }
        if value == nil { rest.removeFirst() }
        return try give(parameter, text, as: "option '\(option)'")
      }
      let flags = command.parameters.filter { $0.wording == .flag }
      if let flag = flags.first(where: { option == "--no-\($0.name)" }) {
        guard value == nil else { throw Mistake(message: "option '\(option)' takes no value") }
        return try add(flag, .boolean(false), option)
      }
      let names = command.parameters.map { "--\($0.name)" } + flags.map { "--no-\($0.name)" }
      throw Mistake(
        message: "unknown option '\(option)'\(CommandWords.hint(option, names + ["--help"]))")
    }

    private mutating func give(
      _ parameter: Command.Parameter, _ word: ByteString, as name: ByteString
    ) throws(Mistake) {
      guard let value = parameter.type.value(of: word) else {
        let wanted = parameter.type.expected(insteadOf: word)
        throw Mistake(message: "\(name): \(wanted) expected, got '\(word)'")
      }
      try add(parameter, value, name)
    }

    private mutating func add(
      _ parameter: Command.Parameter, _ value: FlowValue, _ name: ByteString
    ) throws(Mistake) {
      guard let index = given.firstIndex(where: { $0.parameter.key == parameter.key }) else {
        return given.append(Given(parameter: parameter, values: [value]))
      }
      if parameter.wording != .words { throw Mistake(message: "\(name) is given twice") }
      given[index].values.append(value)
    }

    /// The given words, with `false` for flags that weren't given.
    func complete() throws(Mistake) -> [Given] {
      var all = given
      for parameter in command.parameters
      where !all.contains(where: { $0.parameter.key == parameter.key }) {
        if parameter.isRequired {
          let isPrimary = parameter.key == command.primary?.key
          let form =
            isPrimary ? "<\(parameter.name)>" : "option '--\(parameter.name)'" as ByteString
          throw Mistake(message: "\(form) is missing: \(parameter.type.present.name)")
        }
        if parameter.wording == .flag, parameter.preset == nil, !parameter.type.isOptional {
          all.append(Given(parameter: parameter, values: [.boolean(false)]))
        }
      }
      let presets = (command.op as? Flow)?.ownData ?? []
      for need in command.others
      where !need.type.isOptional && !presets.contains(where: { $0.name == need.name }) {
        throw Mistake(
          message:
            "<\(need.name)> is \(need.type.name), which only Lua can give: there is no option for it"
        )
      }
      return all
    }
  }
}
