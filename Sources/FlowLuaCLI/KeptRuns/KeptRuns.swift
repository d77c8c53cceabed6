internal import FlowEngine
internal import FlowJournal

/// Performs the commands about kept runs, which execute no script.
struct KeptRuns {
  private let folder: ByteString
  private let program: ByteString

  init(_ arguments: CommandLineArguments) throws(CommandLineArguments.Misuse) {
    program = arguments.program
    if let folder = arguments.options.kept?.store {
      self.folder = folder
      return
    }
    switch arguments.script {
    case .file(let path): folder = Keeping.folder(besides: Keeping.absolute(path))
    case .standardInput: throw Keeping.misuse("runs are kept only for a script that is a file")
    case nil: folder = Keeping.folder(besides: "")
    }
  }

  /// Performs a command; returns the exit status.
  func perform(_ command: StoreOptions.Command) -> Int32 {
    do throws(FlowError) {
      switch command {
      case .list: try list()
      case .show(let id): try show(id)
      case .forget(let id):
        try openToWrite().forget(id)
        write("removed run \(id.onOneLine)\n")
      case .forgetOlder(let seconds, let text):
        let removed = try openToWrite().forget(olderThan: seconds)
        for id in removed { write("removed run \(id.onOneLine)\n") }
        if removed.isEmpty { write("no run is older than \(text)\n") }
      case .verify: return try verify()
      }
      return 0
    } catch {
      Output.error(program: program, error.messageBytes)
      return 1
    }
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

  private func list() throws(FlowError) {
    let runs = try openToRead().runs()
    if runs.isEmpty {
      write("there are no runs in the store '\(folder.onOneLine)'\n")
    } else {
      write(KeptRunText.table(of: runs))
    }
  }

  private func show(_ id: ByteString) throws(FlowError) {
    let store = try openToRead()
    let run = try store.run(id)
    let records = try store.records(of: id)
    write(KeptRunText.head(of: run))
    if !records.isEmpty { write("\n") }
    for record in records { write(KeptRunText.lines(of: record)) }
  }

  private func verify() throws(FlowError) -> Int32 {
    let store = try openToRead()
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
