internal import FlowEngine
internal import FlowJournal
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// Does the work of the stand-alone interpreter, in its order: the environment, the options, the
/// script or standard input. Afterwards it waits for all tasks that were started.
final class Interpreter {
  let arguments: CommandLineArguments
  let deferred: DeferredScriptHost
  let signals: Signals
  let messages: Messages
  private let monitors: Monitors
  private let keeping: Keeping?
  private var limit: TimeLimit?
  private var questions: Questions?
  var vm: LuaVM { deferred.vm }

  /// A step has failed, and the failure has been reported.
  private struct Failed: Error {
    /// Whether the exit status is 0 nevertheless.
    var isForgiven = false
  }

  init(_ arguments: CommandLineArguments) throws {
    self.arguments = arguments
    // Before a sandbox removes the variables.
    let remoteKey = RemoteOptions.key(arguments)
    let refusesDeprecated = try Self.refusesDeprecated(arguments)
    let server = try RemoteOptions.settings(arguments)
    let confinement = try Confinement(arguments)
    messages = Messages(program: arguments.program)
    keeping = try Keeping(arguments, server)
    // Before there are threads and files, and outside of the sandbox. A process that executes no op needs no nodes.
    let executes = !arguments.options.checks && keeping?.explains != true
    let hosts = executes ? try StartedHosts.start(arguments, server: server) : nil
    let remote = hosts?.settings ?? server
    monitors = try Monitors(
      arguments.options, messages, title: arguments.title,
      showsProgress: keeping?.rehearses != true)
    try confinement.begin(keeping)
    if case .file(let path)? = arguments.script {
      TestProcess.present?.enterSandbox(of: path, arguments.options.confinement)
    }
    try hosts?.beginReading()
    let limits = arguments.options.confinement
    var configuration = LuaConfiguration(
      memoryLimit: limits?.memory?.bytes, loadsBytecode: true, refusesExit: false,
      ignoresEnvironment: arguments.ignoresEnvironment)
    configuration.outputGuard = monitors.progress?.outputGuard
    let vm: LuaVM
    do {
      vm = try LuaVM(configuration: configuration)
    } catch {
      guard let memory = limits?.memory else { throw error }
      throw LongOptions.misuse("option '--memory-limit' \(memory.text) is too small to start Lua")
    }
    if let present = Sandbox.present {
      try vm.confine(deniesPrograms: !present.allowsPrograms, temporaryFolder: Sandbox.folder)
    }
    let isVirtual = arguments.options.usesVirtualClock
    deferred = try DeferredScriptHost(vm: vm) {
      FlowEventLoop(clock: isVirtual ? VirtualClock() : SystemClock())
    }
    signals = Signals(vm)
    deferred.onMake = { [unowned self, signals, messages, monitors, keeping] host in
      SandboxBindings.allow(on: host) { confinement.narrowing(keeping) }
      keeping?.begin(host, messages)
      if let workers = arguments.options.workers { host.workerLimit = workers }
      let remoteOps = host.remoteOps
      remoteOps.settings = remote
      remoteOps.key = remoteKey
      if let options = arguments.options.remote { remoteOps.defaults = options.defaults }
      remoteOps.hasStartedNodes = hosts != nil
      host.events.onWarning = { messages.say($0) }
      host.deprecations =
        refusesDeprecated ? .refused : .reported { messages.say("warning: \($0)") }
      host.events.onNeedOfWorkers = { flowsystem_keep_freed_memory() }
      messages.host = host
      if [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].contains(where: { isatty($0) != 0 }) {
        host.loop.onTerminalRequest = { messages.say("'\($0)' asks on the terminal") }
      }
      host.vm.onExit = { [unowned host] in
        Keeping.willExit()
        messages.reportFailures(of: host)
      }
      if arguments.script != nil {
        let completes = arguments.options.completes
        host.events.commandLine = ScriptCommandLine(completes: completes) { text, status in
          if status == 0 {
            Output.write(text, toError: false)
          } else {
            Output.error(program: arguments.title, text)
          }
          FlowEventLoop.endPrograms()
          exit(status)
        }
      }
      if arguments.options.completes {
        host.checking = ScriptHost.Checking { place, reason in
          messages.say("no completions: \(place) \(reason) before flow.main")
          exit(1)
        }
      }
      host.events.onStopFunction = { flowsystem_stop_by_script() }
      signals.catchTermination(host) {
        messages.reportFailures(of: host)
        monitors.finish()
        hosts?.end()
        // A service manager knows from the status that the next start continues.
        let isKept = Keeping.end(.stopped) == true
        if isKept, flowsystem_termination_signal() == SIGTERM || !Keeping.waits.isEmpty {
          exit(Keeping.resumableStatus)
        }
        // No signal has ended it, but that it only waits.
        if flowsystem_termination_signal() == 0, !Keeping.waits.isEmpty { exit(1) }
      }
      host.events.onTerminated = { monitors.writeRuns() }
      listen(to: host)
      if let grace = arguments.options.grace {
        host.loop.cleanupGrace = Duration(clampingSeconds: grace)
      }
      monitors.watch(host)
      if arguments.options.checks {
        let allowsEffects = host.checking?.allowsEffects ?? false
        host.checking = ScriptHost.Checking(allowsEffects: allowsEffects) {
          monitors.endCheck(at: $0, because: $1)
        }
      }
    }
  }

  /// Lets messages come: from the terminal, and from other processes as long as this one is to stay for them.
  private func listen(to host: ScriptHost) {
    let center = host.loop.messages
    let asks = Questions.isPossible && !host.loop.timeSource.isVirtual
    center.holds = keeping?.stays == true && !host.loop.timeSource.isVirtual
    if asks { questions = Questions(host.loop) }
    host.events.onOnlyMessages = { [keeping] in keeping?.endsForMessages($0) ?? false }
  }

  /// Whether `FLOWLUA_DEPRECATIONS` makes warnings of deprecations errors.
  private static func refusesDeprecated(
    _ arguments: CommandLineArguments
  ) throws(CommandLineArguments.Misuse) -> Bool {
    guard !arguments.ignoresEnvironment, let text = environment("FLOWLUA_DEPRECATIONS") else {
      return false
    }
    guard text == "warn" || text == "error" else {
      throw LongOptions.misuse("FLOWLUA_DEPRECATIONS is 'warn' or 'error', not '\(text)'")
    }
    return text == "error"
  }

  /// Runs everything to its end; returns the exit status.
  func run() -> Int32 {
    if arguments.showsVersion { printVersions() }
    signals.catchInterruption()
    monitors.finishAtExit()
    var succeeds: Bool
    let end = ScriptEnd(
      deferred, messages, isSession: arguments.isInteractive || arguments.script == nil
    ) { [unowned self] in limit?.message ?? "interrupted!" }
    do {
      if arguments.options.confinement?.limitsTime == true {
        limit = try TimeLimit.begin(arguments, try deferred.makeHost())
      }
      try setArguments()
      if arguments.options.checks || arguments.options.completes || keeping?.explains == true {
        try deferred.makeHost().installCheckedLibrary()
      }
      if case .tests? = arguments.script {
        // The processes of the files take the rest.
        try call { try TestRunner.makeMain(arguments, vm) }
      } else {
        if !arguments.ignoresEnvironment { try runInitialization() }
        for preparation in arguments.preparations { try run(preparation) }
        try runScript()
      }
      succeeds = end.finish()
      if succeeds, arguments.options.completes {
        messages.say("no completions: the script doesn't call flow.main")
        succeeds = false
      }
    } catch {
      // An error that hasn't been reported yet was raised outside of any chunk, and has no
      // traceback.
      let failed = error as? Failed
      if failed == nil { messages.report(error) }
      let isClean = end.cancel(because: messages.lastError)
      succeeds = isClean && failed?.isForgiven == true
    }
    signals.stopAsking()
    monitors.finish()
    // Tasks that outlived their run, if any.
    FlowEventLoop.endPrograms()
    if succeeds, keeping?.endRehearsal() == false { succeeds = false }
    deferred.closeAtExit()
    if monitors.hasFailed { succeeds = false }
    if let exceeded = limit?.message {
      // Code may have caught the error.
      if succeeds { messages.say(exceeded) }
      return TimeLimit.status
    }
    if succeeds, let option = keeping?.uselessOption {
      messages.say(
        "option '\(option)' has had no effect: no run was kept; it belongs to '--keep' or '--resume'"
      )
      return 2
    }
    // As other programs, so that the loop of a shell ends with it. Scripts without flows end as lua5.4 ends them.
    if messages.hasReportedInterruption, flowsystem_was_interrupted() {
      Signals.failing = SIGINT
    }
    return succeeds ? 0 : 1
  }

  /// The output of `-v`. If a chunk follows, it comes right after Lua's line, as lua5.4 has it.
  private func printVersions() {
    if arguments.isInteractive || !arguments.executes && arguments.script == nil {
      Self.printVersion()
    } else {
      Output.write(ByteString(LuaVM.copyright) + "\n", toError: false)
    }
  }

  /// Lua's line, and then this program's.
  static func printVersion() {
    Output.write(ByteString(LuaVM.copyright) + "\n" + Usage.version + "\n", toError: false)
  }

  private func setArguments() throws {
    let (words, zero) = arguments.arg
    let table = try vm.makeTable(values: words[min(zero + 1, words.count)...].map { .string($0) })
    for (index, word) in words[...min(zero, words.count - 1)].enumerated() {
      try vm.set(.string(word), at: index - zero, in: table)
    }
    try vm.setGlobal("arg", .reference(table))
  }

  /// `LUA_INIT_5_4`, else `LUA_INIT`: a chunk, or `@` and a file.
  private func runInitialization() throws {
    for name: String in ["LUA_INIT_5_4", "LUA_INIT"] {
      guard let value = getenv(name) else { continue }
      let text = ByteString(cString: value)
      if text.bytes.first == UInt8(ascii: "@") {
        try call { try vm.loadFile(ByteString(text.bytes.dropFirst())) }
      } else {
        try call { try vm.load(text, chunkName: "=\(name)", mode: .any) }
      }
      return
    }
  }

  private func run(_ preparation: CommandLineArguments.Preparation) throws {
    switch preparation {
    case .execute(let text):
      try call { try vm.load(ByteString(text.bytes), chunkName: "=(command line)") }
    case .warnings:
      try vm.warn("@on")
      try warnOfShadowedModule()
    case .require(let module, let global):
      let results = try reporting {
        try vm.call(
          global: "require", [.string(ByteString(module.bytes))], traceback: true)
      }
      try vm.assignGlobal(ByteString(global.bytes), results.first ?? .nil)
    }
  }

  /// Warns of a file that `require "flow"` would find in lua5.4, but not here.
  private func warnOfShadowedModule() throws {
    guard case .reference(let package) = try vm.rawGet("package", in: vm.globals()),
      case .reference(let search) = try vm.rawGet("searchpath", in: package),
      case .string(let path) = try vm.rawGet("path", in: package),
      case .string(let file)? = try vm.call(search, ["flow", .string(path)]).first
    else { return }
    let meaning = """
       isn't what require "flow" loads: that is flowlua's own module, which require "flowlua" loads too
      """
    try vm.warn(ByteString("'".bytes + file.bytes + "'\(meaning)".bytes))
  }

  private func runSession() throws {
    let host = try deferred.makeHost()
    // The lines are read from the terminal, too, while nothing waits.
    questions?.isFree = false
    host.events.onMainWait = { [questions] in questions?.isFree = $0 }
    try Session(self).run()
    host.events.onMainWait = nil
    questions?.isFree = true
  }

  private func runScript() throws {
    switch arguments.script {
    case .file(let path):
      try vm.searchModules(inFolderOf: ByteString(path.bytes))
      let chunk = try reporting { try loadScript(path) }
      try reporting { try vm.callScript(chunk) }
    case .tests: return
    case .standardInput:
      let chunk = try reporting { try vm.loadFile(nil) }
      try reporting { try vm.callScript(chunk) }
    case nil:
      if arguments.isInteractive || arguments.executes || arguments.showsVersion { break }
      guard isatty(STDIN_FILENO) != 0 else {
        do {
          try call { try vm.loadFile(nil) }
        } catch is Failed {
          // lua5.4 does the same with a chunk on standard input.
          throw Failed(isForgiven: true)
        }
        return
      }
      Self.printVersion()
      try runSession()
      return
    }
    if arguments.isInteractive { try runSession() }
  }

  /// Loads the script; in a process for tests with what executes those after it.
  private func loadScript(_ path: ByteString) throws -> LuaReference {
    guard let test = TestProcess.present else { return try vm.loadFile(path) }
    let host = try deferred.makeHost()
    var settings = test.settings(path)
    settings.isOver = { [unowned self] in limit?.message != nil }
    try host.beginTests(settings)
    return try host.testMain(try vm.loadFile(path))
  }

  /// Loads a chunk and calls it without arguments.
  private func call(_ load: () throws -> LuaReference) throws {
    try reporting { _ = try vm.call(try load(), traceback: true) }
  }

  /// Reports a thrown error.
  private func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      messages.report(error)
      throw Failed()
    }
  }
}
