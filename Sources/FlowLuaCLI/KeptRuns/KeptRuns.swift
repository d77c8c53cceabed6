internal import FlowEngine
internal import FlowJournal
internal import FlowScripting

/// Performs the commands about kept runs, which execute no script.
struct KeptRuns {
  private let folder: ByteString
  private let program: ByteString
  /// The server that has the runs; nil: only the store.
  private let mirror: RunMirror?
  /// Whether the commands are about the runs of all scripts.
  private let isAboutAll: Bool
  /// The name in the store of the script whose runs are listed; nil: of all.
  private let script: ByteString?
  private let options: LongOptions

  init(_ arguments: CommandLineArguments) throws(CommandLineArguments.Misuse) {
    program = arguments.program
    options = arguments.options
    var path: ByteString?
    if case .file(let given)? = arguments.script { path = given }
    let kept = arguments.options.kept
    mirror =
      kept?.usesServer == true
      ? try Keeping.mirror(kept ?? KeepingOptions(), path, try RemoteOptions.settings(arguments))
      : nil
    isAboutAll = path == nil && kept?.serverName == nil
    if case .standardInput? = arguments.script {
      throw Keeping.misuse("runs are kept only for a script that is a file")
    }
    folder = kept?.store ?? Keeping.folder(besides: path?.resolvedPath ?? "")
    script = path.map { [folder] in Keeping.name(of: $0.resolvedPath, in: folder) }
  }

  /// Performs a command; returns the exit status.
  func perform(_ command: StoreOptions.Command) -> Int32 {
    do throws(FlowError) {
      if let mirror { return try perform(command, MirroredStore(mirror, in: folder)) }
      switch command {
      case .list:
        let store = try openToRead()
        let runs = try store.runs()
        let own = script.map { name in runs.filter { $0.script == name } } ?? runs
        try list(own, folder, store)
        if own.count < runs.count, options.kept?.stored.page == nil {
          let rest = runs.count - own.count
          write(
            "\(rest) \(rest == 1 ? "run" : "runs") of other scripts: flowlua --runs --store "
              + "\(KeptRunText.quoted(folder))\n")
        }
      case .show(let id):
        let store = try openToRead()
        return try aboutRun { () throws(FlowError) in try show(id, store) }
      case .forget(let id):
        let store = try openToWrite()
        return try aboutRun { () throws(FlowError) in
          try store.forget(id)
          report([id])
        }
      case .forgetOlder(let seconds, let text):
        report(try openToWrite().forget(olderThan: seconds), olderThan: text)
      case .verify: return try verify(try openToRead())
      case .send(let id, let messages):
        let store = try openToWrite()
        return try aboutRun { () throws(FlowError) in try store.send(messages, to: id) }
      }
      return 0
    } catch {
      Output.error(program: program, error.message)
      return 1
    }
  }

  /// The status of a command about one run: one that isn't there is a mistake of the command line.
  private func aboutRun(_ body: () throws(FlowError) -> Void) throws(FlowError) -> Int32 {
    do throws(FlowError) {
      try body()
      return 0
    } catch {
      guard error.storeProblem == .missing || error.storeProblem == .unsuitable else {
        throw error
      }
      Output.error(program: program, error.message)
      return 2
    }
  }

  /// Performs a command about the runs on a server.
  private func perform(
    _ command: StoreOptions.Command, _ copy: MirroredStore
  ) throws(FlowError) -> Int32 {
    defer { copy.close() }
    switch command {
    case .forget, .forgetOlder:
      if isAboutAll {
        throw FlowError(
          .error, "name the script whose runs are to be removed from the server, after the options")
      }
    default: break
    }
    switch command {
    case .list:
      try copy.fetchAll(ofAllScripts: isAboutAll)
      try list(try copy.runs(ofAllScripts: isAboutAll), copy.store.folder, copy.store)
    case .show(let id):
      try copy.fetchAll(ofAllScripts: isAboutAll)
      return try aboutRun { () throws(FlowError) in try show(id, copy.store) }
    case .forget(let id):
      return try aboutRun { () throws(FlowError) in
        try copy.forget(id)
        report([id])
      }
    case .forgetOlder(let seconds, let text):
      report(try copy.forget(olderThan: seconds), olderThan: text)
    case .verify:
      try copy.fetchAll(ofAllScripts: isAboutAll)
      return try verify(copy.store)
    case .send(let id, let messages):
      return try aboutRun { () throws(FlowError) in try copy.store.send(messages, to: id) }
    }
    return 0
  }

  private func report(_ removed: [ByteString], olderThan age: ByteString = "") {
    for id in removed { write("removed run \(id.onOneLine)\n") }
    if removed.isEmpty { write("no run is older than \(age)\n") }
  }

  private func openToRead() throws(FlowError) -> JournalStore {
    try JournalStore(folder: folder, isReadOnly: true)
  }

  /// Opens a store that exists: one that writes would be made.
  private func openToWrite() throws(FlowError) -> JournalStore {
    try JournalStore.checkExists(folder)
    return try JournalStore(folder: folder, isReadOnly: false)
  }

  private func write(_ text: ByteString) { Output.write(text, toError: false) }

  private func list(
    _ runs: [KeptRunSummary], _ folder: ByteString, _ store: JournalStore
  ) throws(FlowError) {
    if let page = options.kept?.stored.page {
      if let reason = RunsPage(runs, store, at: page).write() { throw FlowError(.error, reason) }
      return
    }
    if runs.isEmpty {
      let owner = script.map { " of '\($0.onOneLine)'" as ByteString } ?? ""
      write("there are no runs\(owner) in the store '\(folder.onOneLine)'\n")
    } else {
      write(KeptRunText.table(of: runs))
      for run in runs {
        for wait in (try? store.waits(of: run.id)) ?? [] {
          write(KeptRunText.line(of: wait, in: run.id) + "\n")
        }
      }
    }
  }

  private func show(_ id: ByteString, _ store: JournalStore) throws(FlowError) {
    let run = try store.run(id)
    let records = try store.records(of: id)
    if options.timeline != nil || options.report != nil {
      let view = try KeptRunView(id, in: store)
      for (path, text) in [(options.timeline, view.timeline), (options.report, view.report)] {
        guard let path else { continue }
        if path == "-" {
          write(text)
        } else if let reason = TextFile.write(text, to: path) {
          throw FlowError(.error, "can't write '\(path)': \(ByteString(reason))")
        }
      }
      return
    }
    write(KeptRunText.head(of: run))
    for wait in try store.waits(of: id) { write(KeptRunText.line(of: wait, in: id) + "\n") }
    if !records.isEmpty { write("\n") }
    for record in records { write(KeptRunText.lines(of: record)) }
  }

  private func verify(_ store: JournalStore) throws(FlowError) -> Int32 {
    let damages = store.verify()
    for damage in damages {
      let place = damage.run.map { "run \($0.onOneLine): " as ByteString } ?? ""
      write(place + damage.message.onOneLine + "\n")
    }
    // A store that can't be listed is one of the problems.
    let count = (try? store.runs().count) ?? 0
    let problems = damages.count
    write(
      "verified \(count) \(count == 1 ? "run" : "runs")"
        + (problems == 0 ? "\n" : ": \(problems) \(problems == 1 ? "problem" : "problems")\n"))
    return problems == 0 ? 0 : 1
  }
}
