internal import FlowEngine
internal import FlowScripting

/// The options of flowlua. They come before the script, among those of the interpreter. A value is
/// the next word or follows `=`.
struct LongOptions {
  enum SummaryForm: String, CaseIterable { case text, json }

  /// A file for the summaries.
  struct SummaryFile {
    let path: ByteString
    let form: SummaryForm
  }

  /// Whether output has colours.
  enum Color: String, CaseIterable {
    /// On a terminal, unless `NO_COLOR` is set.
    case auto
    case always, never
  }

  /// The form of the times in summaries.
  enum Time: String, CaseIterable { case clock, iso }

  /// How the progress of runs is shown.
  enum Progress: String, CaseIterable {
    /// As a tree on a terminal.
    case auto
    /// As lines.
    case plain
    case never
  }

  /// A file for the graph, whose suffix selects the format.
  struct GraphFile {
    enum Form: String, CaseIterable { case dot, mmd, svg }
    let path: ByteString
    let form: Form
  }

  private(set) var showsHelp = false
  private(set) var showsVersion = false
  /// The form of the summaries on stderr; nil: no summaries.
  private(set) var summary: SummaryForm?
  private(set) var summaryFile: SummaryFile?
  private(set) var graph: GraphFile?
  /// The file for events; `-` is stdout.
  private(set) var events: ByteString?
  /// Whether the lines of the summaries are printed as they happen.
  private(set) var follows = false
  /// The form of the times in summaries.
  private(set) var time = Time.clock
  private(set) var color = Color.auto
  /// The file for the report in Markdown.
  private(set) var report: ByteString?
  /// The file for the trace.
  private(set) var trace: ByteString?
  /// Where the spans of the runs are written; nil: nowhere.
  private(set) var otlp: SpanExport?
  /// The file for the page with the timeline.
  private(set) var timeline: ByteString?
  private(set) var usesVirtualClock = false
  /// The number of workers; nil: one per core.
  private(set) var workers: Int?
  /// Whether flows are checked instead of executed.
  private(set) var checks = false
  /// The grace of cleanups in seconds; nil: the default.
  private(set) var grace: Double?
  private(set) var progress = Progress.auto
  /// What is said about kept runs. Made by the first option about them: fields of these many types would cost each
  /// start.
  private(set) var kept: KeepingOptions?
  /// What is said about other machines; nil without such an option.
  private(set) var remote: RemoteOptions?
  /// The limits and permissions of the script; nil without any.
  private(set) var confinement: ConfinementOptions?
  /// The folder for the annotations, if they are to be written and nothing else is to be done.
  private(set) var annotations: ByteString?
  /// The folder of `--init`.
  private(set) var project: ByteString?
  /// The first option that has an effect only if a script is executed here.
  private(set) var scriptOption: ByteString?

  private enum Name: String, CaseIterable {
    case annotations, check, color, events, follow, forget, from, grace, graph, help, keep, only,
      otlp
    case progress, report, resume, runs, settle, show, store, summary, time, timeline, trace,
      verify,
      version
    case why, within, workers
    case sandbox
    case hosts, insecure, join, name, remote, tags
    case project = "init"
    case hostsAddress = "hosts-address"
    case hostsCommand = "hosts-command"
    case hostsLauncher = "hosts-launcher"
    case remoteCheck = "remote-check"
    case remoteShared = "remote-shared"
    case remoteTimeout = "remote-timeout"
    case allowEnv = "allow-env"
    case allowNet = "allow-net"
    case allowRead = "allow-read"
    case allowRun = "allow-run"
    case allowWrite = "allow-write"
    case cpuLimit = "cpu-limit"
    case memoryLimit = "memory-limit"
    case noCache = "no-cache"
    case olderThan = "older-than"
    case openFiles = "open-files"
    case storeLimit = "store-limit"
    case timeLimit = "time-limit"
    case trustCode = "trust-code"
    case noProgress = "no-progress"
    case virtualClock = "virtual-clock"

    /// Whether an option has an effect only if a script is executed here, and its user would miss that.
    var concernsScript: Bool {
      switch self {
      case .check, .events, .from, .graph, .keep, .noCache, .only, .otlp, .remoteShared,
        .remoteTimeout, .report, .resume, .settle, .storeLimit, .summary, .timeLimit, .timeline,
        .trace, .trustCode, .virtualClock, .why, .within:
        true
      default: false
      }
    }

    /// Whether the value `-` is standard output.
    var mayBeStdout: Bool {
      self == .events || self == .report || self == .timeline || self == .trace
    }

    /// The kind of value that an option takes.
    var value: ByteString {
      switch self {
      case .allowEnv: "the name of a variable: --allow-env=NAME"
      case .allowRead: "a path: --allow-read=PATH"
      case .allowWrite: "a path: --allow-write=PATH"
      case .cpuLimit: "a number of seconds: --cpu-limit 60"
      case .hosts: "names: --hosts a,b"
      case .hostsAddress: "an address of this machine: --hosts-address 10.0.0.7"
      case .hostsCommand: "a command: --hosts-command /opt/bin/flowlua"
      case .hostsLauncher: "a command: --hosts-launcher 'docker exec -i'"
      case .memoryLimit: "a size: --memory-limit 512M"
      case .openFiles: "a number: --open-files 256"
      case .name: "a name: --name gpu1"
      case .remote: "a URL: --remote nats://HOST"
      case .remoteShared: "a folder: --remote-shared /data"
      case .remoteTimeout: "a number of seconds: --remote-timeout 60"
      case .tags: "words: --tags gpu,big"
      case .timeLimit: "a number of seconds: --time-limit 60"
      case .color: "a word: --color auto, always or never"
      case .time: "a word: --time clock or iso"
      case .events: "a file: --events FILE"
      case .from: "an op: --from UploadOp"
      case .graph: "a file: --graph FILE"
      case .only: "an op: --only 'UploadOp #40'"
      case .olderThan: "an age: --older-than 30d"
      case .progress: "a word: --progress auto, plain or never"
      case .report: "a file: --report FILE"
      case .settle: "an op and what became of it: --settle 'PayOp=done', '=again' or '=fail'"
      case .show: "a run: --show RUN"
      case .store: "a folder: --store DIR"
      case .storeLimit: "a size: --store-limit 500M"
      case .timeline: "a file: --timeline FILE"
      case .trace: "a file: --trace FILE"
      case .within: "an age: --within 12h"
      case .workers: "a number: --workers N"
      case .grace: "a number of seconds: --grace S"
      case .annotations: "a folder: --annotations DIR"
      default: "no value"
      }
    }
  }

  /// What is said about kept runs, so that more can be said.
  private var about: KeepingOptions {
    mutating get {
      if let kept { return kept }
      let made = KeepingOptions()
      kept = made
      return made
    }
  }

  /// What is said about other machines, so that more can be said.
  private var machines: RemoteOptions {
    mutating get {
      if let remote { return remote }
      let made = RemoteOptions()
      remote = made
      return made
    }
  }

  /// Limits and permissions, so that more can be said.
  private var limits: ConfinementOptions {
    mutating get {
      if let confinement { return confinement }
      let made = ConfinementOptions()
      confinement = made
      return made
    }
  }

  /// The files that are written when the script ends, with their options.
  var writtenAtEnd: [(option: ByteString, path: ByteString)] {
    var files: [(ByteString, ByteString?)] = [
      ("--report", report), ("--timeline", timeline), ("--trace", trace), ("--graph", graph?.path),
      ("--summary", summaryFile?.path),
    ]
    if case .file(let path)? = otlp { files.append(("--otlp", path)) }
    return files.compactMap { option, path in
      path.flatMap { $0 == "-" ? nil : (option, $0) }
    }
  }

  /// Refuses to write over a script: its name follows an option easily whose file was forgotten. Also refuses files
  /// that can't be written: at the end of the script it would be too late.
  func checkWritten() throws(CommandLineArguments.Misuse) {
    var files = writtenAtEnd
    if let events, events != "-" { files.append(("--events", events)) }
    for (option, path) in files {
      if TextFile.isScript(path) {
        throw Self.misuse(
          "option '\(option)' would write over the script '\(path)': the file to write comes before it"
        )
      }
      let isReplaced = option != "--events" && option != "--graph"
      if let reason = TextFile.obstacle(to: path, isReplaced: isReplaced) {
        throw Self.misuse("option '\(option)' can't write '\(path)': \(reason)")
      }
    }
  }

  /// Parses an option; returns the number of its words.
  mutating func parse(
    _ word: ByteString, next: ByteString?
  ) throws(CommandLineArguments.Misuse) -> Int {
    let parts = word.bytes.split(
      separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
    let written = ByteString(Array(parts[0]))
    let value = parts.count > 1 ? ByteString(Array(parts[1])) : nil
    guard let name = Name(rawValue: String(written.description.dropFirst(2))) else {
      throw Self.misuse(Self.unknown(written))
    }
    if name.concernsScript, scriptOption == nil { scriptOption = written }
    switch name {
    case .allowEnv, .allowRead, .allowWrite, .annotations, .color, .cpuLimit, .events, .from,
      .grace,
      .graph, .hosts, .hostsAddress, .hostsCommand, .hostsLauncher, .memoryLimit, .name,
      .olderThan, .only, .openFiles, .progress, .remote, .remoteShared, .remoteTimeout, .report,
      .settle, .show, .store, .tags,
      .storeLimit, .time, .timeLimit, .timeline, .trace, .within, .workers:
      // Only these options take the next word.
      guard let given = value ?? next,
        value != nil || given.bytes.first != UInt8(ascii: "-") || given == "-" && name.mayBeStdout,
        !given.bytes.isEmpty
      else {
        throw Self.misuse("option '\(written)' needs \(name.value)")
      }
      switch name {
      case .allowEnv: try limits.allowVariables(written, given)
      case .allowRead: try limits.allow(written, given, writing: false)
      case .allowWrite: try limits.allow(written, given, writing: true)
      case .cpuLimit: try limits.limitProcessorTime(given)
      case .memoryLimit: try limits.limitMemory(given)
      case .openFiles: try limits.limitOpenFiles(given)
      case .hosts: try machines.hosts.add(given)
      case .hostsAddress: try machines.hosts.setAddress(given)
      case .hostsCommand: try machines.hosts.setCommand(given)
      case .hostsLauncher: try machines.hosts.setLauncher(given)
      case .name: try machines.setName(given)
      case .remote: machines.server = given
      case .remoteShared: try machines.addShared(given)
      case .remoteTimeout: try machines.setTimeout(given)
      case .tags: try machines.setTags(given)
      case .timeLimit: try limits.limitTime(given)
      case .color: color = try Self.color(given)
      case .events: events = given
      case .from: try about.choose(.from(given))
      case .graph: graph = try Self.graphFile(given)
      case .grace: grace = try Self.seconds(given)
      case .olderThan: try about.stored.forgetOlder(than: given)
      case .only: try about.choose(.only([given]))
      case .progress: progress = try Self.progress(given)
      case .report: report = given
      case .settle: try settle(given)
      case .show: about.stored.note(written, .show(given))
      case .store: about.store = given
      case .storeLimit: try about.stored.setLimit(given)
      case .time: time = try Self.time(given)
      case .timeline: timeline = given
      case .trace: trace = given
      case .within: try about.setWithin(given)
      case .workers: workers = try Self.number(given)
      default: annotations = given
      }
      return value == nil ? 2 : 1
    case .sandbox:
      try limits.useSandbox(value)
      return 1
    case .join:
      let isNext =
        value == nil && next.map { $0.bytes.first != UInt8(ascii: "-") || $0 == "-" } == true
      machines.join(value ?? (isNext ? next : nil))
      return isNext ? 2 : 1
    case .project:
      let isNext = value == nil && next.map { $0.bytes.first != UInt8(ascii: "-") } == true
      project = value ?? (isNext ? next : ".")
      if project?.isEmpty == true {
        throw Self.misuse("option '--init' needs the name of a folder, or none: --init FOLDER")
      }
      return isNext ? 2 : 1
    case .summary:
      try parseSummary(value ?? "text")
      return 1
    case .resume:
      if value?.bytes.isEmpty == true {
        throw Self.misuse("option '--resume' needs a run: --resume=RUN")
      }
      about.choice = value.map { .run($0) } ?? .latest
      return 1
    case .keep:
      if let value { try about.keep(value, naming: "option '--keep'") }
      if about.choice == nil { about.choice = .new }
      return 1
    case .forget:
      let isNext = value == nil && next.map { $0.bytes.first != UInt8(ascii: "-") } == true
      let given = value ?? (isNext ? next : nil)
      about.stored.note(written, given.flatMap { $0.isEmpty ? nil : .forget($0) })
      return isNext ? 2 : 1
    case .otlp:
      let isNext = value == nil && next.map { Self.isTarget($0) } == true
      let given = value ?? (isNext ? next : nil)
      do {
        otlp = try SpanExport(given?.bytes.isEmpty == true ? nil : given)
      } catch {
        throw Self.misuse(error.message)
      }
      return isNext ? 2 : 1
    default: break
    }
    if value != nil { throw Self.misuse("option '\(written)' takes no value") }
    switch name {
    case .allowNet:
      limits.allowsNetwork = true
      limits.note(written)
    case .allowRun:
      limits.allowsPrograms = true
      limits.note(written)
    case .insecure: machines.isInsecure = true
    case .remoteCheck: machines.checks = true
    case .help: showsHelp = true
    case .version: showsVersion = true
    case .virtualClock: usesVirtualClock = true
    case .check: checks = true
    case .noProgress: progress = .never
    case .follow: follows = true
    case .trustCode: about.trustsCode = true
    case .noCache: about.usesCache = false
    case .runs: about.stored.note(written, .list)
    case .verify: about.stored.note(written, .verify)
    case .why: try about.choose(.nothing)
    case .allowEnv, .allowRead, .allowWrite, .annotations, .color, .cpuLimit, .events, .forget,
      .from,
      .grace, .graph, .hosts, .hostsAddress, .hostsCommand, .hostsLauncher, .join, .keep,
      .memoryLimit, .name, .olderThan, .only, .openFiles, .otlp, .progress, .project,
      .remote, .remoteShared, .remoteTimeout, .report, .resume, .tags,
      .sandbox, .settle, .show, .store, .storeLimit, .summary, .time, .timeLimit, .timeline, .trace,
      .within, .workers:
      break
    }
    return 1
  }

  /// Whether the word after `--otlp` is its value, not the script or another option. A script may have any name, but
  /// hardly one of these.
  private static func isTarget(_ word: ByteString) -> Bool {
    if word == "-" { return true }
    guard word.bytes.first != UInt8(ascii: "-") else { return false }
    return word.contains("://")
      || [".json", ".jsonl", ".ndjson"].contains {
        word.bytes.reversed().starts(with: $0.utf8.reversed())
      }
  }

  /// Parses `text`, `json`, `text:FILE` or `json:FILE`.
  private mutating func parseSummary(
    _ value: ByteString
  ) throws(CommandLineArguments.Misuse) {
    let parts = value.bytes.split(
      separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    for form in SummaryForm.allCases where parts[0].elementsEqual(form.rawValue.utf8) {
      if parts.count == 1 {
        summary = form
      } else if parts[1].isEmpty {
        throw Self.misuse("option '--summary' needs a file: --summary=\(form.rawValue):FILE")
      } else {
        summaryFile = SummaryFile(path: ByteString(Array(parts[1])), form: form)
      }
      return
    }
    throw Self.misuse(
      "option '--summary' takes 'text' or 'json', not '\(value)', and a file after that: json:FILE")
  }

  /// Parses `PayOp=done`.
  private mutating func settle(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let sign = text.bytes.lastIndex(of: UInt8(ascii: "=")), sign > 0,
      case let verdict = ByteString(Array(text.bytes[(sign + 1)...])),
      ["done", "again", "fail"].contains(verdict)
    else {
      throw Self.misuse(
        "option '--settle' takes an op and 'done', 'again' or 'fail', as in 'PayOp=done', not '\(text)'"
      )
    }
    about.settlements[ByteString(Array(text.bytes[..<sign]))] = verdict
  }

  static func misuse(_ message: ByteString) -> CommandLineArguments.Misuse {
    CommandLineArguments.Misuse(message: message, status: 2, showsUsage: false)
  }

  private static func unknown(_ word: ByteString) -> ByteString {
    let text = word.description
    let nearest = Name.allCases.map { (name: "--\($0.rawValue)", distance($0.rawValue, text)) }
      .min { $0.1 < $1.1 }
    return "unrecognized option '\(word)' (did you mean '\(nearest?.name ?? "--help")'?)"
  }

  /// The number of letters that must change to turn one word into another, without the dashes.
  private static func distance(_ name: String, _ word: String) -> Int {
    // The user chooses the length.
    let right = Array(word.utf8.drop { $0 == UInt8(ascii: "-") }.prefix(40))
    var row = Array(0...right.count)
    for (i, a) in name.utf8.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let above = row[j + 1]
        row[j + 1] = min(diagonal + (a == b ? 0 : 1), above + 1, row[j] + 1)
        diagonal = above
      }
    }
    return row[right.count]
  }
}
