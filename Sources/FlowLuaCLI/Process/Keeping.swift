internal import FlowEngine
internal import FlowJournal
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem

/// The keeping of a script's runs, as the command line and the environment ask for it.
final class Keeping {
  private let arguments: CommandLineArguments
  /// nil: only what the script itself wants to be kept.
  private let choice: KeepingOptions.Choice?
  /// The path of the script, as it was given.
  private let path: ByteString
  /// The server that keeps the runs as well; nil: none.
  private let mirror: RunMirror?
  /// The text of the key for secrets.
  private let storeKey = Secrets.storeKey

  /// nil if there is no script that runs could be kept for. `remote` is the server of the command line, or of the
  /// environment.
  init?(
    _ arguments: CommandLineArguments, _ remote: RemoteSettings?
  ) throws(CommandLineArguments.Misuse) {
    self.arguments = arguments
    let asked = arguments.options.kept?.choice
    if arguments.options.kept?.within != nil {
      guard case .latest? = asked else {
        throw Self.misuse(
          "option '--within' belongs to '--resume' without a run: --resume --within 12h")
      }
    }
    guard case .file(let path) = arguments.script else {
      if asked == nil { return nil }
      throw Self.misuse("runs can be kept only for a script that is a file")
    }
    self.path = path
    if arguments.options.checks, arguments.options.kept?.choosesOps == true {
      throw Self.misuse("option '--check' can't be combined with '--why', '--only' or '--from'")
    }
    let variable = arguments.ignoresEnvironment ? nil : Self.variable
    choice = asked ?? (variable == nil ? nil : .new)
    var options = arguments.options.kept
    if let variable, variable.hasPrefix("nats"), options?.usesServer != true {
      options = options ?? KeepingOptions()
      try options?.keep(variable, naming: "FLOWLUA_KEEP")
    }
    mirror = try options.flatMap { options throws(CommandLineArguments.Misuse) in
      try Self.mirror(options, path, remote)
    }
  }

  /// The server that options ask for; nil for none.
  static func mirror(
    _ options: KeepingOptions, _ path: ByteString?, _ remote: RemoteSettings?
  ) throws(CommandLineArguments.Misuse) -> RunMirror? {
    guard options.usesServer else { return nil }
    guard let remote else {
      throw misuse("option '--keep=nats' needs a server: --remote nats://HOST, or FLOWLUA_REMOTE")
    }
    let file = path.map { $0.resolvedPath.fileName } ?? ""
    return RunMirror(script: options.serverName ?? file, on: remote)
  }

  static func misuse(_ message: ByteString) -> CommandLineArguments.Misuse {
    CommandLineArguments.Misuse(message: message, status: 2, showsUsage: false)
  }

  /// The value of `FLOWLUA_KEEP`; nil if it keeps nothing.
  private static var variable: ByteString? {
    guard let text = environment("FLOWLUA_KEEP") else { return nil }
    return ["0", "no", "off", "false"].contains(text) ? nil : text
  }

  /// The store of the scripts of a folder.
  static func folder(besides script: ByteString) -> ByteString {
    let slash = script.bytes.lastIndex(of: UInt8(ascii: "/"))
    return ByteString(script.bytes[..<(slash.map { $0 + 1 } ?? 0)]) + ".flowlua"
  }

  /// The name of a script in a store: its path from the folder around the store, so that all of it can be moved; for a
  /// script that is elsewhere its path from the root.
  static func name(of script: ByteString, in store: ByteString) -> ByteString {
    // The store may not exist yet.
    let up = folder(besides: store).bytes.dropLast(".flowlua".bytes.count)
    let around = (up.isEmpty ? "." : ByteString(up)).resolvedPath.bytes
    let start = around.last == UInt8(ascii: "/") ? around : around + [UInt8(ascii: "/")]
    return script.bytes.starts(with: start)
      ? ByteString(script.bytes[start.count...]) : script
  }

  /// The folder of the store; nil if the options ask for none.
  var folder: ByteString? {
    if choice == nil { return nil }
    return arguments.options.kept?.store ?? Self.folder(besides: path.resolvedPath)
  }

  /// Makes the folder of the store, so that a sandbox can allow it; returns its path.
  func makeFolder() throws(FlowError) -> ByteString? {
    guard let folder else { return nil }
    try StoreKey.makeFolder(folder)
    return folder
  }

  /// Keeps the runs of a host, or lets its script ask for that.
  func begin(_ host: ScriptHost, _ messages: Messages) {
    if rehearses {
      host.checking = ScriptHost.Checking(allowsEffects: !explains) { [unowned self] in
        endRehearsal(at: $0, because: $1)
      }
    }
    let program = executablePath ?? arguments.program
    host.hostKeeping.command = { [storeKey] in
      HostKeeping.Command(
        words: Self.command(for: $2, of: $0, in: $1, program),
        environment: storeKey.map { ["FLOWLUA_STORE_KEY": $0] } ?? [:])
    }
    host.hostKeeping.onBegin = { [unowned self] keeping in
      Self.messages = messages
      Self.open = keeping
      keepsRuns = true
      if rehearses { keeping.onRehearsal = { [unowned self] in note($0, $1) } }
      Self.isRehearsal = rehearses
      keeping.onWrongChoice = { Self.end(because: "option '--from': \($0.message)") }
      if case .run(let id)? = choice {
        keeping.onMissingRun = { Self.end(withoutRun: id, because: $0, of: $1) }
      }
    }
    if choice == nil {
      host.hostKeeping.defaults = makeOptions
    } else {
      host.keep(makeOptions()) { messages.say($0) }
    }
  }

  /// The command that executes an op of a run again.
  private static func command(
    for op: ByteString, of run: KeptRunSummary, in store: ByteString, _ program: ByteString
  ) -> [ByteString] {
    let isWhole = run.script.bytes.first == UInt8(ascii: "/")
    // The name of a script is its path from the folder around the store.
    let script = isWhole ? run.script : store + "/../" + run.script
    return [program, "--resume=\(run.id)", "--only", op, "--store", store, script] + run.words
  }

  /// Whether the options or the script have asked for kept runs.
  private var keepsRuns = false

  /// An option about kept runs that has had no effect; nil: each had one. A script may ask for kept runs itself, so only
  /// its end tells.
  var uselessOption: ByteString? {
    guard choice == nil, !keepsRuns, let given = arguments.options.kept else { return nil }
    if !given.settlements.isEmpty { return "--settle" }
    if given.trustsCode { return "--trust-code" }
    return given.store == nil ? nil : "--store"
  }

  // MARK: Rehearsals

  private var ops: ScriptKeeping.Choice { arguments.options.kept?.ops ?? .changed }

  /// Whether ops aren't executed, but explained.
  var explains: Bool {
    if case .nothing = ops { true } else { false }
  }

  /// Whether some ops aren't executed although they have to be.
  var rehearses: Bool {
    if case .only = ops { true } else { explains }
  }

  /// How many chosen ops were executed, and what kept the others from that.
  private var executed = 0
  /// How many other ops weren't.
  private var skipped = 0
  private var obstacle: KeptRehearsal.Finding?
  /// The plans of the runs with obstacles: they name ops that weren't reached.
  private var plans: [ByteString] = []
  private var hasFailures = false

  /// Takes what was found out about a run.
  private func note(_ run: Run, _ rehearsal: KeptRehearsal) {
    if explains {
      Output.write(RehearsalText.text(of: rehearsal, run), toError: false)
      return
    }
    executed += rehearsal.executed
    skipped += rehearsal.skipped
    obstacle = obstacle ?? rehearsal.unknown
    if executed == 0, rehearsal.unknown != nil { plans.append(run.plan()) }
    for (path, message) in rehearsal.failures {
      hasFailures = true
      Self.messages?.say("[\(path)] \(message)")
    }
  }

  /// Ends the process where the script uses the outcome of a run that has none, which would be invented, or would have an
  /// effect.
  private func endRehearsal(at place: ByteString, because reason: ByteString) -> Never {
    if explains {
      let position = place.isEmpty ? "the script" : place
      Output.write("\(position) \(reason): what follows isn't known\n", toError: false)
    }
    let hasFailure = Self.messages.map { messages in
      messages.host.map { messages.reportFailures(of: $0) } ?? false
    }
    let isDone = endRehearsal()
    FlowEventLoop.endPrograms()
    exit(isDone && hasFailure != true ? 0 : 1)
  }

  /// Reports chosen ops that weren't executed; returns whether all that was chosen has been done.
  func endRehearsal() -> Bool {
    switch ops {
    case .changed, .nothing: return true
    case .only(let names):
      let shown = names.map { "'\($0)'" as ByteString }.reduce("") {
        $0.isEmpty ? $1 : $0 + ", " + $1
      }
      if executed > 0 {
        let run = Self.open?.id.map { " of run \($0)" as ByteString } ?? ""
        Self.messages?.say(
          "--only \(shown): executed \(executed) \(executed == 1 ? "op" : "ops")\(run), skipped \(skipped)"
        )
        return !hasFailures
      }
      let isThere = names.contains { name in
        Self.open?.hasOp(named: name) == true || plans.contains { $0.names(op: name) }
      }
      let why: ByteString =
        (isThere ? obstacle : nil).map { ": what follows [\($0.path)] isn't known (\($0.line))" }
        ?? ": no op of the script has that name\(Self.open?.hint(for: names) ?? "")"
      Self.messages?.say("--only \(shown) has executed nothing\(why)")
      return false
    case .from(let name):
      if Self.open?.takeRehearsal().executed ?? 0 > 0 { return true }
      Self.messages?.say(
        "--from '\(name)' has executed nothing: no op that was reached has that name")
      return false
    }
  }

  private func makeOptions() -> ScriptKeeping.Options {
    let script = path.resolvedPath
    let given = arguments.options.kept
    let folder = given?.store ?? Self.folder(besides: script)
    let words = Array(arguments.arg.words.dropFirst(arguments.arg.zero + 1))
    var kept = ScriptKeeping.Options(
      folder: folder, script: Self.name(of: script, in: folder), words: words)
    kept.isFolderGiven = given?.store != nil
    kept.scriptName = { Self.name(of: script, in: $0) }
    kept.isDry = arguments.options.checks
    kept.mirror = mirror
    kept.storeKey = arguments.ignoresEnvironment ? nil : storeKey
    if let given {
      kept.choice = given.ops
      kept.within = given.within
      kept.trustsCode = given.trustsCode
      kept.settlements = given.settlements
      kept.usesCache = given.usesCache
      if let limit = given.stored.limit { kept.storeLimit = limit }
    }
    switch choice {
    case nil, .new?: kept.resumption = .none
    case .latest?: kept.resumption = .latest
    case .run(let id)?: kept.resumption = .run(id)
    }
    return kept
  }

  // MARK: Messages

  /// Whether the process ends because runs wait for nothing but messages; notes what it says then.
  func endsForMessages(_ center: MessageCenter) -> Bool {
    // A run that isn't kept ends with the process; it waits for nothing that could come.
    let waits = center.waits.filter { $0.box.store.isShared }
    guard let open = Self.open, open.isOpen, let id = open.id, !waits.isEmpty else { return false }
    let secrets = waits[0].loop.secrets
    var rest: ByteString = ""
    // The script may have chosen the folder.
    if mirror == nil, open.folder != Self.folder(besides: path.resolvedPath) {
      rest = " --store \(KeptRunText.quoted(open.folder))"
    }
    rest = rest + " --resume " + KeptRunText.quoted(path)
    for word in arguments.arg.words.dropFirst(arguments.arg.zero + 1) {
      rest = rest + " " + KeptRunText.quoted(secrets.redacted(word))
    }
    Self.waits = waits.map { wait in
      let request = wait.request
      let kept = KeptWait(
        wait: "", name: request.name, ask: request.ask.map { wait.loop.secrets.redacted($0) },
        type: request.type?.name, began: 0)
      return KeptRunText.line(of: kept, in: id) + rest
    }
    return true
  }

  /// Whether the process stays when there are only waits for messages.
  var stays: Bool { arguments.options.kept?.stays == true }

  /// The lines about the waits that end the process; empty if none does.
  // Unsafe: used on the main thread only, also while the process exits.
  private(set) nonisolated(unsafe) static var waits: [ByteString] = []

  // MARK: The end

  /// Ends the process where the first run of the script would begin: the run of `--resume` isn't among those of the
  /// script.
  private static func end(
    withoutRun id: ByteString, because error: FlowError, of runs: [ByteString]?
  ) -> Never {
    let known: ByteString =
      switch runs?.count {
      case nil: "--runs lists those that there are"
      case 0?: "the script has none there"
      default:
        "the latest runs of the script: "
          + (runs ?? []).suffix(5).reduce("") { $0.isEmpty ? $1 : "\($0), \($1)" }
      }
    end(because: "option '--resume=\(id)': \(error.message); \(known)")
  }

  /// Ends the process because of a mistake of the command line.
  private static func end(because mistake: ByteString) -> Never {
    messages?.say(mistake)
    FlowEventLoop.endPrograms()
    exit(2)
  }

  /// The exit status of a script that SIGTERM has ended, or that waits for messages, and that `--resume` continues.
  static let resumableStatus: Int32 = 75

  // Unsafe: used on the main thread only, also while the process exits.
  private nonisolated(unsafe) static var open: ScriptKeeping?
  private nonisolated(unsafe) static var messages: Messages?
  private nonisolated(unsafe) static var isRehearsal = false
  private nonisolated(unsafe) static var hasMistakenOption = false

  /// Notes that the script calls `os.exit`.
  static func willExit() { open?.willExit() }

  /// Records the end of the script in a process that exits with a status, unless that was done, and returns the status.
  static func end(withStatus status: Int32) -> Int32 {
    let isStop = status == resumableStatus || Signals.failing != 0
    let isKept = end(status == 0 ? .finished : isStop ? .stopped : .failed)
    guard status == 0 else { return status }
    return isKept == false ? 1 : hasMistakenOption ? 2 : 0
  }

  /// Records the end of the script, unless that was done, and says how a run continues that hasn't finished. A script
  /// that ends in the middle with status 0 has chosen that. Returns whether it was kept; nil if there was nothing to
  /// keep.
  static func end(_ end: KeptRunEnd) -> Bool? {
    guard let open else { return nil }
    self.open = nil
    guard open.isOpen else { return nil }
    do throws(FlowError) {
      try open.end(end)
      if let problem = open.problemOfSettlements {
        messages?.say("option '--settle': \(problem)")
        hasMistakenOption = true
      }
      if let id = open.id, let summary = open.summary { messages?.say("\(id): \(summary)") }
      if !waits.isEmpty {
        for line in waits { Output.error(program: nil, line) }
      } else if end != .finished, !isRehearsal, let id = open.id {
        let option: ByteString = open.continuesNamedRun ? "--resume=\(id)" : "--resume"
        messages?.say("run \(id) is kept; \(option) continues it")
      }
      return true
    } catch {
      // The script has removed the store itself, which may be in a temporary folder of its own.
      if error.storeProblem == .removed { return end == .finished }
      messages?.say(error.message)
      return false
    }
  }
}

extension ByteString {
  /// Whether a line of a plan (`Run.plan`) is about an op with the last name of a path, without the number of an item.
  fileprivate func names(op path: ByteString) -> Bool {
    let item = path.itemSign.map { ByteString(path.bytes[..<$0]) } ?? path
    let name = item.fileName
    return split(at: "\n").contains { line in
      // After the number of the step, or a dash.
      let words = line.drop { $0 == UInt8(ascii: " ") }.split(at: " ", maxSplits: 1)
      guard words.count == 2 else { return false }
      let shown = ByteString(words[1])
      return shown == name || shown.hasPrefix(name + " (") || shown.hasPrefix(name + ":")
    }
  }
}
