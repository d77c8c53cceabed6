internal import FlowEngine

/// The texts about the commands of a script: help, and completions for bash.
struct CommandHelp {
  /// The script, as it was called.
  let script: ByteString
  let commands: [Command]
  let doc: ByteString?
  /// The text of a default value.
  let shown: (FlowValue) -> ByteString

  /// The help of a command; nil: of the script with several.
  func text(_ command: Command?) -> ByteString {
    guard let command else { return scriptText }
    var usage: ByteString = "Usage: \(script)"
    if let name = command.name { usage = "\(usage) \(name)" }
    if !command.parameters.isEmpty { usage = usage + " [OPTIONS]" }
    if let primary = command.primary {
      let form = primary.wording == .words ? "\(primary.name)…" : "\(primary.name)" as ByteString
      usage = usage + (primary.isRequired ? " <\(form)>" : " [<\(form)>]")
    }
    var text: ByteString = usage + "\n"
    if let doc = command.op.doc ?? (command.name == nil ? doc : nil) { text = text + "\n\(doc)\n" }
    let rows = command.parameters.map { (form(of: $0, in: command), description(of: $0)) }
    text = text + "\n" + table(rows + [("--help", "shows this")])
    if !command.others.isEmpty {
      let names = command.others.map { "\($0.name) (\($0.type.name))" as ByteString }
      text =
        text + "\nOnly from Lua: " + names.dropFirst().reduce(names[0]) { "\($0), \($1)" } + "\n"
    }
    return text
  }

  private var scriptText: ByteString {
    let rows = commands.map { command in
      (command.name ?? "", ByteString((command.op.doc ?? "").bytes.prefix { $0 != 10 }))
    }
    let intro = doc.map { "\n\($0)\n" as ByteString } ?? ""
    return "Usage: \(script) COMMAND [OPTIONS]\n\(intro)\nCommands:\n" + table(rows)
      + "\n\(script) COMMAND --help describes a command.\n"
  }

  private func form(of parameter: Command.Parameter, in command: Command) -> ByteString {
    switch parameter.wording {
    case .flag:
      parameter.preset == .boolean(true) ? "--no-\(parameter.name)" : "--\(parameter.name)"
    case _ where parameter.key == command.primary?.key: "<\(parameter.name)>"
    default: "--\(parameter.name) \(parameter.form)"
    }
  }

  private func description(of parameter: Command.Parameter) -> ByteString {
    var notes: [ByteString] = []
    let choices = parameter.type.choices
    if let first = choices.first {
      notes.append(choices.dropFirst().reduce(first) { "\($0), \($1)" })
    }
    if parameter.wording == .words { notes.append("may be repeated") }
    if let preset = parameter.preset, parameter.wording != .flag {
      notes.append("default: \(shown(preset))")
    } else if parameter.isRequired {
      notes.append("required")
    }
    let text = parameter.doc ?? ""
    guard let first = notes.first else { return text }
    let note: ByteString = "(" + notes.dropFirst().reduce(first) { "\($0); \($1)" } + ")"
    return text.isEmpty ? note : "\(text) \(note)"
  }

  private func table(_ rows: [(form: ByteString, text: ByteString)]) -> ByteString {
    let width = min(rows.map(\.form.description.count).max() ?? 0, 30)
    return rows.reduce("") { text, row in
      let gap = String(
        repeating: " " as String, count: max(width - row.form.description.count, 0) + 2)
      return "\(text)  \(row.form)\(row.text.isEmpty ? "" : "\(gap)\(row.text)")\n"
    }
  }

  // MARK: Completions

  /// A script of bash that completes commands, options and values.
  var completions: ByteString {
    let name = ByteString(script.bytes[((script.bytes.lastIndex(of: 47) ?? -1) + 1)...])
    let function =
      "_"
      + ByteString(
        name.bytes.map { byte in
          let isPlain =
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
          return isPlain ? byte : 95
        })
    var cases: ByteString = ""
    for command in commands {
      let label = command.name.map(Self.quoted) ?? "*"
      cases = cases + "    \(label)) case $before in\n"
      for parameter in command.parameters where !parameter.type.choices.isEmpty {
        let option = Self.quoted("--\(parameter.name)")
        cases = cases + "      \(option)) words=\(Self.list(parameter.type.choices)) ;;\n"
      }
      let options = command.parameters.flatMap { parameter -> [ByteString] in
        parameter.wording == .flag
          ? ["--\(parameter.name)", "--no-\(parameter.name)"] : ["--\(parameter.name)"]
      }
      cases = cases + "      *) words=\(Self.list(options + ["--help"])) ;;\n    esac ;;\n"
    }
    let names = commands.compactMap(\.name)
    return """
      # Completes \(name) in bash: source <(flowlua --completions bash \(script))
      \(function)() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words
        if ((COMP_CWORD == 1 && \(names.count))); then command=; fi
        case $command in
          '') words=\(Self.list(names + ["--help"])) ;;
      \(cases)  esac
        local IFS=$'\\n'
        COMPREPLY=($(compgen -W "$words" -- "$word"))
      }
      complete -o default -F \(function) \(Self.quoted(name)) \(Self.quoted(script))

      """
  }

  /// Words with line ends between them, quoted for the shell. Those that bash couldn't take apart are left out.
  private static func list(_ words: [ByteString]) -> ByteString {
    let plain = words.filter { word in
      word.bytes.allSatisfy { $0 > 32 && $0 < 127 && !"\\\"'`$".bytes.contains($0) }
    }
    return "$'"
      + plain.enumerated().reduce("") { "\($0)\($1.offset > 0 ? "\\n" : "")\($1.element)" } + "'"
  }

  private static func quoted(_ word: ByteString) -> ByteString {
    let parts = word.bytes.split(separator: 39, omittingEmptySubsequences: false).map {
      ByteString($0)
    }
    return "'" + parts.dropFirst().reduce(parts.first ?? "") { "\($0)'\\''\($1)" } + "'"
  }
}
