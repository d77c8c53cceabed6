internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.main`: the commands of a script.
enum MainBindings {
  static func install(in host: ScriptHost) {
    host.define("main") { host, call in
      let arguments = Arguments(host, call, "main")
      let (commands, doc) = try commands(arguments)
      let table = try call.value(1)
      guard let line = host.events.commandLine, isMainChunk(host) else { return call.answer(table) }
      let (script, words) = try words(host, call)
      let help = CommandHelp(script: script, commands: commands, doc: doc) {
        host.loop.secrets.shownText(of: $0)
      }
      if line.completes { line.end(help.completions, 0) }
      let outcome: CommandWords.Outcome
      do throws(CommandWords.Mistake) {
        outcome = try CommandWords(commands: commands).read(words)
      } catch {
        line.end(error.message, 2)
        return call.answer(table)
      }
      switch outcome {
      case .help(let command):
        line.end(help.text(command), 0)
        return call.answer(table)
      case .start(let command, let given): return try start(command, given, table, host, call)
      }
    }
  }

  /// The ops of `{ deploy, rollback, doc = … }`, or of a single one.
  private static func commands(_ arguments: Arguments) throws -> ([Command], ByteString?) {
    let call = arguments.call
    if call.kind(1) != .table { return ([Command(try arguments.op(1), isOnly: true)], nil) }
    var ops: [(index: Int64, op: Op)] = []
    var doc: ByteString?
    for (key, value) in try arguments.host.vm.pairs(of: try arguments.table(1)) {
      switch (key, value) {
      case (.integer(let index), _):
        guard let op = arguments.host.op(in: value) else {
          let kind = arguments.host.kindName(of: value)
          throw arguments.wrong(1, "element \(index): op expected, got \(kind)")
        }
        if let complaint = op.complaintOfClass { throw arguments.wrong(1, complaint) }
        ops.append((index, op))
      case (.string("doc"), .string(let text)): doc = text
      case (.string("doc"), _):
        throw arguments.wrong(
          1, "field 'doc': string expected, got \(arguments.host.kindName(of: value))")
      case (.string(let name), _):
        throw arguments.wrong(1, "unknown field '\(name)'; known is 'doc'")
      default:
        throw arguments.wrong(
          1, "list of ops expected, got a key of type \(arguments.host.vm.typeName(of: key))")
      }
    }
    if ops.isEmpty { throw arguments.wrong(1, "list of ops expected, got an empty one") }
    let commands = ops.sorted { $0.index < $1.index }.map { Command($0.op, isOnly: ops.count == 1) }
    var names: Set<ByteString> = []
    for case let name? in commands.map(\.name) {
      if !names.insert(name).inserted {
        throw arguments.wrong(1, "two commands are named '\(name)'")
      }
      if name.hasPrefix("-") { throw arguments.wrong(1, "a command can't be named '\(name)'") }
    }
    return (commands, doc)
  }

  /// Whether the script itself calls, neither a module nor a file of it.
  private static func isMainChunk(_ host: ScriptHost) -> Bool {
    let lines = host.vm.traceback(level: 1).bytes.split(separator: 10)
    let isMain = { (line: ArraySlice<UInt8>) in
      line.suffix(15).elementsEqual(": in main chunk".bytes)
    }
    let loader = "\t[C]: in function 'require'".bytes
    return lines.count(where: isMain) == 1 && !lines.contains { $0.elementsEqual(loader) }
  }

  /// The script's name, and the words after it.
  private static func words(
    _ host: ScriptHost, _ call: LuaCall
  ) throws -> (ByteString, [ByteString]) {
    guard case .reference(let table) = try host.vm.rawGet("arg", in: try host.vm.globals()),
      table.kind == .table
    else { throw host.usage(call, "bad use of 'main' (the global 'arg' isn't a table any more)") }
    var words: [ByteString] = []
    while case let value = try host.vm.element(words.count + 1, of: table), !value.isNil {
      guard case .string(let word) = value else {
        let kind = host.kindName(of: value)
        throw host.usage(
          call, "bad use of 'main' (arg[\(words.count + 1)]: string expected, got \(kind))")
      }
      words.append(word)
    }
    guard case .string(let script) = try host.vm.element(0, of: table) else {
      return ("script", words)
    }
    return (script, words)
  }

  /// Starts the op of a command, and waits for its end: a failure is reported as any that nothing has observed.
  private static func start(
    _ command: Command, _ given: [CommandWords.Given], _ table: LuaValue, _ host: ScriptHost,
    _ call: LuaCall
  ) throws -> LuaAnswer {
    let data = try given.map { each in
      guard each.parameter.wording == .words else {
        return (each.parameter.key, each.values.first ?? .null)
      }
      let list = try host.vm.makeTable(values: try each.values.map { try host.luaValue($0) })
      return (each.parameter.key, FlowValue(.reference(list)))
    }
    let run = command.op.start(
      on: host.loop, data: data, owner: host.currentOp, adopt: try host.adopter(nil))
    if run.isConcluded || host.mayLackOutcomes { return call.answer(table) }
    return try call.wait(TaskWait(run, for: host.waitingTask, deadline: nil) { $0.answer(table) })
  }
}
