internal import FlowEngine
internal import FlowScripting

/// An option of flowlua. All that is said of it stands here: parsing, `--help` and suggestions come from it, and from
/// `--help` the completions, the manual page and the article (scripts/install.d/options.lua).
struct Option: Sendable {
  enum Section: CaseIterable { case flowlua, tests, nodes, limits }

  /// The part that follows the name.
  enum Value {
    case none
    /// A word, the next one or after `=`. `need` is the end of the message without one.
    case word(need: ByteString, mayBeStdout: Bool)
    /// A word after `=`, or the next one if it is like a value; or nothing.
    case optional(isValue: @Sendable (ByteString) -> Bool)
  }

  typealias Action =
    @Sendable (inout LongOptions, _ name: ByteString, _ value: ByteString?)
    throws(CommandLineArguments.Misuse) -> Void

  let section: Section
  /// How it is written, and what it does; an option with several forms has a row for each.
  var rows: [(form: ByteString, help: ByteString)]
  let value: Value
  /// Whether it has an effect only if a script is executed here, and its user would miss that.
  let concernsScript: Bool
  let take: Action

  /// Its name with the dashes.
  var name: ByteString {
    let end = rows[0].form.bytes.firstIndex { [UInt8(ascii: "="), 0x5B, 0x20].contains($0) }
    return end.map { ByteString(rows[0].form.bytes[..<$0]) } ?? rows[0].form
  }

  /// The option of a name; nil without one.
  static func named(_ name: ByteString) -> Option? { all.first { $0.name == name } }
}

extension Option {
  /// All options, in the order of `--help`.
  static let all: [Option] = {
    var table = OptionTable()
    table.addOutput()
    table.addKeeping()
    table.addExecution()
    table.section = .tests
    table.addTests()
    table.section = .nodes
    table.addNodes()
    table.section = .limits
    table.addLimits()
    return table.options
  }()
}

/// The table while it is made: a statement for each option, as one list of them all takes the compiler minutes.
private struct OptionTable {
  var options: [Option] = []
  var section = Option.Section.flowlua

  private mutating func add(
    _ form: ByteString, _ help: ByteString, _ value: Option.Value, _ concernsScript: Bool,
    _ take: @escaping Option.Action
  ) {
    options.append(
      Option(
        section: section, rows: [(form, help)], value: value,
        concernsScript: concernsScript, take: take))
  }

  /// An option without a value.
  mutating func flag(
    _ form: ByteString, _ help: ByteString, forScript: Bool = false,
    _ take:
      @escaping @Sendable (inout LongOptions, _ name: ByteString) throws(CommandLineArguments
      .Misuse) -> Void
  ) {
    add(form, help, .none, forScript) {
      (options, name, _) throws(CommandLineArguments.Misuse) in try take(&options, name)
    }
  }

  /// An option with a value.
  mutating func word(
    _ form: ByteString, needs: ByteString, _ help: ByteString, forScript: Bool = false,
    mayBeStdout: Bool = false,
    _ take:
      @escaping @Sendable (inout LongOptions, _ value: ByteString) throws(CommandLineArguments
      .Misuse) -> Void
  ) {
    add(form, help, .word(need: needs, mayBeStdout: mayBeStdout), forScript) {
      (options, _, value) throws(CommandLineArguments.Misuse) in try take(&options, value ?? "")
    }
  }

  /// An option with a value that may be left out: only one after `=`, unless `isValue` says more.
  mutating func optional(
    _ form: ByteString, _ help: ByteString, forScript: Bool = false,
    isValue: @escaping @Sendable (ByteString) -> Bool = { _ in false },
    _ take: @escaping Option.Action
  ) {
    add(form, help, .optional(isValue: isValue), forScript, take)
  }

  /// Another form of the option before.
  mutating func form(_ form: ByteString, _ help: ByteString) {
    options[options.count - 1].rows.append((form, help))
  }
}

/// Whether a word is no option.
@Sendable private func isPlain(_ word: ByteString) -> Bool { word.bytes.first != UInt8(ascii: "-") }

extension OptionTable {
  fileprivate mutating func addOutput() {
    optional(
      "--summary[=text|json]", "print the summary of each run to stderr when the run ends",
      forScript: true
    ) { (options, _, value) throws(CommandLineArguments.Misuse) in
      try options.parseSummary(value ?? "text")
    }
    form("--summary=FORM:FILE", "write the summaries of all runs to a file instead, in this form")
    flag("--follow", "print each line of the summaries to stderr as it happens") { options, _ in
      options.follows = true
    }
    word(
      "--time clock|iso", needs: "a word: --time clock or iso",
      "the times in summaries: 4:17:18 PM, or with the date"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.time = try LongOptions.choice(value, of: "--time")
    }
    word(
      "--events FILE", needs: "a file: --events FILE",
      "append each event of each run to a file as a line of JSON, as it happens; - for stdout",
      forScript: true, mayBeStdout: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in options.events = value }
    word(
      "--graph FILE", needs: "a file: --graph FILE",
      "write the flows that the script starts as a graph, to a file that ends in .dot or .mmd (Mermaid), or in .svg (needs Graphviz)",
      forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.graph = try LongOptions.graphFile(value)
    }
    word(
      "--report FILE", needs: "a file: --report FILE",
      "write a report of all runs in Markdown: numbers, problems, what each run waited for, and its ops; '-' is stdout",
      forScript: true, mayBeStdout: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in options.report = value }
    word(
      "--timeline FILE", needs: "a file: --timeline FILE",
      "write a page (HTML) with the timeline of all runs, and update it while they execute; '-' is stdout",
      forScript: true, mayBeStdout: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in options.timeline = value }
    word(
      "--trace FILE", needs: "a file: --trace FILE",
      "write all runs as Chrome trace events, which Perfetto shows; '-' is stdout", forScript: true,
      mayBeStdout: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in options.trace = value }
    optional(
      "--otlp [FILE|URL]",
      """
      write all runs as spans of OpenTelemetry (OTLP/JSON), or send them to a collector; without a value to \
      $OTEL_EXPORTER_OTLP_ENDPOINT. A file whose name ends neither in .json, .jsonl nor .ndjson needs --otlp=FILE
      """, forScript: true, isValue: LongOptions.isTarget
    ) { (options, _, value) throws(CommandLineArguments.Misuse) in
      do throws(SpanExport.Misuse) {
        options.otlp = try SpanExport(value?.bytes.isEmpty == true ? nil : value)
      } catch {
        throw LongOptions.misuse(error.message)
      }
    }
  }
}

extension OptionTable {
  fileprivate mutating func addKeeping() {
    optional(
      "--keep", "keep what the ops of the script finish, in .flowlua beside the script",
      forScript: true
    ) {
      (options, _, value) throws(CommandLineArguments.Misuse) in
      if let value { try options.about.keep(value, naming: "option '--keep'") }
      if options.about.choice == nil { options.about.choice = .new }
    }
    form(
      "--keep=nats[:NAME]",
      "keep it on the server of --remote as well, so that --resume continues on any computer, for the script of this NAME (default: its file's)"
    )
    optional(
      "--resume[=RUN]",
      """
      continue a kept run: by default the latest of the script that hasn't finished, else a new one; ops that had \
      finished aren't executed again
      """, forScript: true
    ) { (options, _, value) throws(CommandLineArguments.Misuse) in
      if value?.bytes.isEmpty == true {
        throw LongOptions.misuse("option '--resume' needs a run: --resume=RUN")
      }
      options.about.choice = value.map { .run($0) } ?? .latest
    }
    word(
      "--within AGE", needs: "an age: --within 12h",
      "with --resume: leave a run that changed last before that, such as 12h, and begin a new one",
      forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in try options.about.setWithin(value) }
    word("--store DIR", needs: "a folder: --store DIR", "keep runs in this folder instead") {
      (options, value) throws(CommandLineArguments.Misuse) in options.about.store = value
    }
    flag(
      "--trust-code", "with --resume: ops count as unchanged although their code has changed",
      forScript: true
    ) { options, _ in options.about.trustsCode = true }
    flag(
      "--no-cache", "execute ops with a cache although a kept run has their result", forScript: true
    ) { options, _ in options.about.usesCache = false }
    word(
      "--settle OP=WORD",
      needs: "an op and its outcome: --settle 'PayOp=done', '=again' or '=fail'",
      "with --resume: the outcome of an op that is executed only once: done, again (execute it) or fail",
      forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in try options.settle(value) }
    flag(
      "--why", "execute no op, but print which ones --resume would execute, and why",
      forScript: true
    ) { (options, _) throws(CommandLineArguments.Misuse) in try options.about.choose(.nothing) }
    word(
      "--only OP", needs: "an op: --only 'UploadOp #40'",
      "execute only these ops of the latest kept run, with the data they had: 'UploadOp #40', a path such as 'ship/UploadOp #40', or all of UploadOp",
      forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.about.choose(.only([value]))
    }
    word(
      "--from OP", needs: "an op: --from UploadOp",
      "continue the latest kept run, and execute this op and all after it", forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.about.choose(.from(value))
    }
    word(
      "--send RUN NAME=VALUE", needs: "a run and messages: --send RUN name=value",
      "send messages to a kept run, which ctx:wait_for takes now, or when it is continued: with --resume, here"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      guard options.about.receiver == nil else {
        throw LongOptions.misuse("option '--send' is there twice")
      }
      options.about.receiver = value
    }
    flag(
      "--stay", "with --keep: stay, without a terminal, while runs wait for nothing but messages",
      forScript: true
    ) { options, _ in options.about.stays = true }
    word(
      "--store-limit SIZE", needs: "a size: --store-limit 500M",
      "how large the store may become, such as 500M (default 2G): when a kept script ends, the oldest other runs are removed",
      forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.about.stored.setLimit(value)
    }
    flag(
      "--runs",
      "list the kept runs, the newest last, of a script that is named only its own; this option and the next four execute no script, but if one is named it says where the store is"
    ) { options, name in options.about.stored.note(name, .list) }
    word(
      "--html FILE", needs: "a file: --html FILE",
      "with --runs: write a page (HTML) of all runs, and beside it the timeline of each"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.about.stored.page = value
    }
    word(
      "--show RUN", needs: "a run: --show RUN",
      "show what the ops of a kept run have done; with --timeline or --report FILE write that instead"
    ) {
      (options, value) throws(CommandLineArguments.Misuse) in
      options.about.stored.note("--show", .show(value))
    }
    optional("--forget RUN", "remove a kept run", isValue: isPlain) { options, name, value in
      options.about.stored.note(name, value.flatMap { $0.isEmpty ? nil : .forget($0) })
    }
    word(
      "--older-than AGE", needs: "an age: --older-than 30d",
      "with --forget instead of RUN: remove the kept runs that changed last before that: 12h, 30d, 4w"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.about.stored.forgetOlder(than: value)
    }
    flag("--verify", "check that the store has what was written; status 1 if it hasn't") {
      options, name in options.about.stored.note(name, .verify)
    }
  }
}

extension OptionTable {
  fileprivate mutating func addExecution() {
    flag(
      "--check",
      "run the script up to where it needs an outcome, but check its flows and print their plans instead of running them; status 1 if a check finds errors",
      forScript: true
    ) { options, _ in options.checks = true }
    flag("--json", "with --check: print each finding as a line of JSON, and no plans") {
      options, _ in options.printsJSON = true
    }
    word(
      "--completions bash", needs: "a shell: --completions bash",
      "print completions of the script's commands (flow.main) for bash, and run nothing"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      guard value == "bash" else {
        throw LongOptions.misuse("option '--completions': bash expected, got '\(value)'")
      }
      options.completes = true
    }
    flag("--virtual-clock", "use a virtual clock, on which sleeping takes no time", forScript: true)
    { options, _ in options.usesVirtualClock = true }
    word(
      "--grace S", needs: "a number of seconds: --grace S",
      "give the cleanups of a stopped op S seconds (default 30, inf: no limit)"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.grace = try LongOptions.seconds(value)
    }
    word("--workers N", needs: "a number: --workers N", "run at most N workers") {
      (options, value) throws(CommandLineArguments.Misuse) in
      options.workers = try LongOptions.number(value)
    }
    word(
      "--color auto|always|never", needs: "a word: --color auto, always or never",
      "whether messages have colours; auto, the default: on a terminal, unless NO_COLOR is set"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.color = try LongOptions.choice(value, of: "--color")
    }
    word(
      "--progress auto|plain|never", needs: "a word: --progress auto, plain or never",
      "how progress is shown: auto (a tree on a terminal), plain (a line for each failure and one every ten seconds), or never"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.progress = try LongOptions.choice(value, of: "--progress")
    }
    flag("--no-progress", "the same as --progress=never") { options, _ in options.progress = .never
    }
    word(
      "--annotations DIR", needs: "a folder: --annotations DIR",
      "write the annotations of 'flow' for LuaLS into a folder"
    ) { (options, value) throws(CommandLineArguments.Misuse) in options.annotations = value }
    optional(
      "--init [FOLDER]",
      """
      write settings for editors, a .gitignore, a first flow and its test into a folder, by default the present one; \
      files that exist are kept
      """, isValue: isPlain
    ) { (options, _, value) throws(CommandLineArguments.Misuse) in
      options.project = value ?? "."
      if value?.isEmpty == true {
        throw LongOptions.misuse(
          "option '--init' needs the name of a folder, or none: --init FOLDER")
      }
    }
    flag("--version", "show the version") { options, _ in options.showsVersion = true }
    flag("--help", "show this help") { options, _ in options.showsHelp = true }
  }
}

extension OptionTable {
  fileprivate mutating func addTests() {
    flag(
      "--test",
      "execute the tests of files: [PATH...] are files, and folders in which all *_test.lua are found (default: here); each file has a process of its own and a virtual clock; status 1 if a test fails, or if there is none"
    ) { options, _ in options.testing.isAsked = true }
    word(
      "--jobs N", needs: "a number: --jobs 4",
      "with --test: execute N files at a time (default: one for each core)"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.testing.jobs = try LongOptions.count(value, of: "--jobs")
    }
    word(
      "--filter TEXT", needs: "a text: --filter TEXT",
      "with --test: only tests whose names have this text"
    ) {
      (options, value) throws(CommandLineArguments.Misuse) in
      options.testing.filter = value
      options.testing.note("--filter")
    }
    flag("--fail-fast", "with --test: end after the first failure") { options, name in
      options.testing.failsFast = true
      options.testing.note(name)
    }
    word(
      "--repeat N", needs: "a number: --repeat 20",
      "with --test: execute everything N times, each with another seed and order, until a test fails"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      options.testing.repetitions = try LongOptions.count(value, of: "--repeat")
    }
    word(
      "--seed N", needs: "a number: --seed 17",
      "with --test: the seed of math.random, delays of retries and the order of tests"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      guard let seed = LongOptions.whole(value) else {
        throw LongOptions.misuse("option '--seed' needs a whole number, not '\(value)'")
      }
      options.testing.seed = Int64(seed)
    }
    word(
      "--junit FILE", needs: "a file: --junit FILE",
      "with --test: write the outcome as XML of JUnit"
    ) {
      (options, value) throws(CommandLineArguments.Misuse) in
      options.testing.junit = value
      options.testing.note("--junit")
    }
    flag("--update", "with --test: write the snapshots that are missing or different") {
      options, name in
      options.testing.updates = true
      options.testing.note(name)
    }
    flag("--coverage", "with --test: list the lines of scripts that no test has executed") {
      options, name in
      options.testing.covers = true
      options.testing.note(name)
    }
  }
}

extension OptionTable {
  fileprivate mutating func addNodes() {
    word(
      "--remote URL", needs: "a URL: --remote nats://HOST",
      "execute ops with thread = \"remote\" on the nodes that have joined this server of NATS: nats://HOST, tls://TOKEN@HOST, or several URLs of a cluster with commas"
    ) { (options, value) throws(CommandLineArguments.Misuse) in options.nodes.server = value }
    word(
      "--remote-timeout S", needs: "a number of seconds: --remote-timeout 60",
      "how long such ops wait while no node can execute them (default 60)", forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.nodes.setTimeout(value)
    }
    word(
      "--remote-shared DIR,...", needs: "a folder: --remote-shared /data",
      "a folder that is the same on all nodes: files in it aren't sent", forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.nodes.addShared(value)
    }
    flag(
      "--remote-check",
      "list the nodes that have joined; status 1 if none can execute ops of this version; no script is executed"
    ) { options, _ in options.nodes.checks = true }
    word(
      "--hosts HOST,...", needs: "names: --hosts a,b",
      "start nodes on these hosts by ssh, and a server here, for as long as the script runs; N/HOST has N workers, @FILE has a host on each line"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.nodes.hosts.add(value)
    }
    word(
      "--hosts-launcher CMD", needs: "a command: --hosts-launcher 'docker exec -i'",
      "start nodes by this command instead of ssh, such as 'docker exec -i'; {} is the place of the host"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.nodes.hosts.setLauncher(value)
    }
    word(
      "--hosts-command CMD", needs: "a command: --hosts-command /opt/bin/flowlua",
      "how flowlua is called on the hosts (default: flowlua)"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.nodes.hosts.setCommand(value)
    }
    word(
      "--hosts-address ADDR", needs: "an address of this computer: --hosts-address 10.0.0.7",
      "the address of this computer for nodes that ssh doesn't connect"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.nodes.hosts.setAddress(value)
    }
    optional(
      "--join [URL]",
      """
      execute the ops of scripts elsewhere until SIGTERM or Ctrl-C, with as many workers as there are cores, or \
      --workers N; no script is executed; without a URL, that of FLOWLUA_REMOTE; - reads it from standard input, and \
      ends with that
      """, isValue: { isPlain($0) || $0 == "-" }
    ) { options, _, value in options.nodes.join(value) }
    word(
      "--name NAME", needs: "a name: --name gpu1",
      "with --join: the name of this node (default: its host name)"
    ) { (options, value) throws(CommandLineArguments.Misuse) in try options.nodes.setName(value)
    }
    word(
      "--tags TAG,...", needs: "words: --tags gpu,big",
      "with --join: words for this node, at most 4, which ops can demand"
    ) { (options, value) throws(CommandLineArguments.Misuse) in try options.nodes.setTags(value)
    }
    flag("--insecure", "let servers of other computers be reached without TLS") { options, _ in
      options.nodes.allowInsecure()
    }
  }
}

extension OptionTable {
  fileprivate mutating func addLimits() {
    word(
      "--memory-limit SIZE", needs: "a size: --memory-limit 512M",
      "limit the memory of the script and its workers, such as 512M: more is the error 'not enough memory'"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.limits.limitMemory(value)
    }
    word(
      "--time-limit S", needs: "a number of seconds: --time-limit 60",
      "cancel everything after S seconds; cleanups have their grace", forScript: true
    ) { (options, value) throws(CommandLineArguments.Misuse) in try options.limits.limitTime(value)
    }
    word(
      "--cpu-limit S", needs: "a number of seconds: --cpu-limit 60",
      "cancel everything after S seconds of processor time, a whole number; each program that the script starts has the same limit"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.limits.limitProcessorTime(value)
    }
    word(
      "--open-files N", needs: "a number: --open-files 256",
      "have at most N files and connections open, 20 or more; each program has the same limit"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.limits.limitOpenFiles(value)
    }
    optional(
      "--sandbox[=strict]",
      """
      let the kernel restrict the script, its C libraries and its programs: it reads its folder and libraries, and \
      writes a temporary folder; needs Linux 5.19, or 6.12 if it is strict
      """
    ) { (options, _, value) throws(CommandLineArguments.Misuse) in
      try options.limits.useSandbox(value)
    }
    word(
      "--allow-read=PATH,...", needs: "a path: --allow-read=PATH",
      "with --sandbox: allow reading of files, and of folders with all in them"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.limits.allow("--allow-read", value, writing: false)
    }
    word(
      "--allow-write=PATH,...", needs: "a path: --allow-write=PATH",
      "with --sandbox: allow reading, writing and removing of files there"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.limits.allow("--allow-write", value, writing: true)
    }
    flag("--allow-net", "with --sandbox: allow internet sockets, not those between processes") {
      options, name in
      options.limits.allowsNetwork = true
      options.limits.note(name)
    }
    flag(
      "--allow-run",
      "with --sandbox: allow starting of programs, to which all other restrictions apply"
    ) { options, name in
      options.limits.allowsPrograms = true
      options.limits.note(name)
    }
    word(
      "--allow-env=VARIABLE,...", needs: "the name of a variable: --allow-env=NAME",
      "with --sandbox: keep these variables of the environment"
    ) { (options, value) throws(CommandLineArguments.Misuse) in
      try options.limits.allowVariables("--allow-env", value)
    }
  }
}
