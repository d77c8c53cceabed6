internal import FlowEngine
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// Performs `--join` and `--remote-check`, which execute no script of this computer.
struct RemoteCommands {
  private let arguments: CommandLineArguments
  private let options: RemoteOptions
  private let program: ByteString

  init(_ arguments: CommandLineArguments, _ options: RemoteOptions) {
    self.arguments = arguments
    self.options = options
    program = arguments.program
  }

  private func say(_ text: ByteString) { Output.error(program: program, text) }

  // MARK: Joining

  private func joinedServer(
    _ starter: NodeStarter?
  ) throws(CommandLineArguments.Misuse) -> RemoteSettings {
    if let starter {
      var settings = try RemoteOptions.settings(
        starter.url, arguments, naming: "option '--join -'")
      settings.isForOwnNodes = true
      do throws(FlowError) { if let key = starter.key { try settings.setKey(key) } } catch {
        throw LongOptions.misuse("option '--join -': \(error.message)")
      }
      return settings
    }
    if let url = options.joined {
      return try RemoteOptions.settings(url, arguments, naming: "option '--join'")
    }
    if let settings = try RemoteOptions.settings(arguments) { return settings }
    throw LongOptions.misuse(
      "option '--join' needs a URL: --join nats://HOST, or the variable FLOWLUA_REMOTE")
  }

  /// Executes jobs of scripts elsewhere until a signal ends that; returns the exit status.
  func join() throws(CommandLineArguments.Misuse) -> Int32 {
    let confinement = try Confinement(arguments)
    let starter = options.readsURL ? try NodeStarter() : nil
    let settings = try joinedServer(starter)
    // Nobody on this node may look after what a job has started.
    let problem = flowsystem_kill_programs_when_killed()
    if problem != 0 {
      say("no process can be started that ends programs: \(String(cString: strerror(problem)))")
      return 1
    }
    var offer = RemoteNode.Offer(
      name: options.name ?? RemoteOptions.hostName, workers: 0, tags: options.tags)
    try confinement.begin(nil)
    do {
      let host = try makeHost()
      defer { host.close() }
      offer.workers = arguments.options.workers ?? host.workerLimit
      host.events.onNeedOfWorkers = { flowsystem_keep_freed_memory() }
      try starter?.watch(on: host.loop)
      let result = host.loop.turn { [offer] in
        try await RemoteNode.join(settings, offer, host: host)
      } until: {
        host.vm.hasRequest || starter?.isGone == true
      }
      switch result {
      case nil where starter?.isGone == true: return 0
      case nil: return 128 + flowsystem_termination_signal()
      case .failure(let error)?:
        if error.kind == .usage { throw LongOptions.misuse(error.message) }
        say(error.message)
        return 1
      case .success(let node)?:
        let workers = Self.count(node.workers, "worker")
        // Who has started it knows that.
        if starter == nil {
          say("joined \(node.server) as \(offer.name), with \(workers)")
        }
        node.onWarning = say
        node.isTemporary = starter != nil
        starter?.onGone = { node.leaveAtOnce() }
        node.run(onRequest: flowsystem_begin_termination, say)
        return 0
      }
    } catch let misuse as CommandLineArguments.Misuse {
      throw misuse
    } catch {
      say(FlowError.from(error).message)
      return 1
    }
  }

  /// A host without a script: only its workers execute code.
  private func makeHost() throws -> ScriptHost {
    let limits = arguments.options.confinement
    let vm = try LuaVM(
      configuration: LuaConfiguration(
        memoryLimit: limits?.memory?.bytes, loadsBytecode: true, refusesExit: false,
        ignoresEnvironment: arguments.ignoresEnvironment))
    if let present = Sandbox.present {
      try vm.confine(deniesPrograms: !present.allowsPrograms, temporaryFolder: Sandbox.folder)
    }
    let host = try ScriptHost(vm: vm)
    if let grace = arguments.options.grace {
      host.loop.cleanupGrace = Duration(clampingSeconds: grace)
    }
    flowsystem_catch_interruption(LuaVM.interrupter, vm.requestContext, LuaVM.interruptionQuestion)
    flowsystem_catch_termination(
      LuaVM.terminator, vm.requestContext, true, host.loop.mailbox.descriptor)
    return host
  }

  // MARK: Listing nodes

  /// Lists the nodes that have joined a server; returns the exit status.
  func check() throws(CommandLineArguments.Misuse) -> Int32 {
    guard let settings = try RemoteOptions.settings(arguments) else {
      throw LongOptions.misuse("option '--remote-check' needs --remote URL or FLOWLUA_REMOTE")
    }
    let loop = FlowEventLoop()
    switch loop.turn({ try await RemoteNodes.ask(settings, on: loop) }) {
    case nil: return 1
    case .failure(let error)?:
      say(error.message)
      return 1
    case .success(let answers)?: return list(answers, settings)
    }
  }

  /// `1 worker`, `2 workers`.
  private static func count(_ number: Int, _ noun: ByteString) -> ByteString {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }

  private func list(_ answers: [RemoteNodes.Answer], _ settings: RemoteSettings) -> Int32 {
    for answer in answers {
      let node = answer.info
      let tags = node.tags.reduce("") { $0 + " " + $1 }
      let delay = Durations.text(of: answer.delay.clampedNanoseconds)
      let (workers, cores) = (
        Self.count(node.workers, "worker"), Self.count(node.cores, "core")
      )
      var line: ByteString =
        "\(node.name): \(workers), \(cores), flowlua \(node.version), Lua \(node.lua), \(delay)"
      if !tags.isEmpty { line = line + ", tags" + tags }
      if let refusal = answer.refusal {
        line =
          line
          + ": refused, \(refusal); this is flowlua \(FlowLuaVersion.number), Lua \(ByteString(LuaVM.release))"
      }
      Output.write(line + "\n", toError: false)
    }
    let usable = answers.count { $0.refusal == nil }
    if usable == 0 {
      say("no node has joined \(settings.place) that can execute ops of this program")
    }
    return usable > 0 ? 0 : 1
  }
}
