package import FlowEngine
package import FlowJournal
internal import FlowSystem

/// Keeps the runs of a script, so that another process can continue them.
///
/// The store is opened when the script starts its first run; a script that starts none leaves nothing.
package final class ScriptKeeping: RunMonitor {
  /// Which run of the store is continued.
  package enum Resumption {
    /// None: a new one begins.
    case none
    /// The latest of the script that hasn't finished; a new one if there is none.
    case latest
    /// The one with this id.
    case run(ByteString)
  }

  /// How long ago something was.
  package struct Age {
    package let seconds: Double
    /// The time for people: `12h`.
    package let text: ByteString

    package init(seconds: Double, text: ByteString) {
      self.seconds = seconds
      self.text = text
    }
  }

  /// Which ops are executed.
  ///
  /// A name is the one of an op, of an item (`UploadOp #40`) or of a step of a machine (`order.pay`), or a path of
  /// such names (`publish/UploadOp #40`).
  package enum Choice {
    /// Those that aren't known to have finished with the same code and inputs.
    case changed
    /// None: what would be executed is only found out, and `onRehearsal` is called with that.
    case nothing
    /// Those with one of these names; the others have what they had set.
    case only([ByteString])
    /// The first one with this name, and all after it; those before it have what they had set.
    case from(ByteString)
  }

  /// How runs are kept.
  package struct Options {
    /// The folder of the store.
    package var folder: ByteString
    /// Whether the person who runs the script has chosen the folder: then `flow.keep` doesn't.
    package var isFolderGiven = false
    /// The script that the runs belong to, by its path.
    package var script: ByteString
    /// Returns the name of the script in the store of another folder, which `flow.keep` chooses; nil: the same.
    package var scriptName: ((_ folder: ByteString) -> ByteString)?
    /// The words of its command line, for people.
    package var words: [ByteString]
    /// Which run is continued.
    package var resumption = Resumption.none
    /// How long ago the latest run may have changed last; an older one isn't continued. nil: any time.
    package var within: Age?
    /// Which ops are executed.
    package var choice = Choice.changed
    /// Whether ops whose code has changed count as unchanged.
    package var trustsCode = false
    /// Whether nothing is kept, because nothing is executed.
    package var isDry = false
    /// Whether ops with a cache may take results of other runs.
    package var usesCache = true
    /// The text of the key by which secrets are kept, a long random one; without it no op that sets a secret is kept.
    package var storeKey: ByteString?
    /// The decisions about ops that are executed only once: `done`, `again` or `fail`, by name.
    package var settlements: [ByteString: ByteString] = [:]
    /// How large the store may become, in bytes: when the script ends, the oldest other runs are removed.
    package var storeLimit = JournalStore.usualLimit
    /// The server that keeps the runs as well, so that another computer can continue them; nil: none.
    package var mirror: RunMirror?

    /// Options with the defaults.
    package init(folder: ByteString, script: ByteString, words: [ByteString] = []) {
      self.folder = folder
      self.script = script
      self.words = words
    }
  }

  var options: Options
  let warn: (ByteString) -> Void
  // Safe: the host holds this.
  unowned let host: ScriptHost
  /// Called at the end of each run of which something was only rehearsed, with what was found out about it.
  package var onRehearsal: ((Run, KeptRehearsal) -> Void)?
  /// Called when the run that was named isn't there, with the reason and the ids of those that the script has, the
  /// oldest first; nil if they aren't known.
  package var onMissingRun: ((FlowError, [ByteString]?) -> Void)?
  /// Called when no op of a finished run has the name of those to execute again, before anything is written.
  package var onWrongChoice: ((FlowError) -> Void)?
  private(set) var store: JournalStore?
  private(set) var keeper: (any RunKeeper)?
  private var kept: KeptRun? { (keeper as? Keeper)?.kept }
  /// Whether all runs are kept, not only those that ask for it.
  var keepsAll = false
  /// How many runs of each name have begun.
  private var counts: [ByteString: UInt64] = [:]
  /// How many kept runs haven't ended.
  private var pendingCount = 0

  init(_ options: Options, _ host: ScriptHost, warn: @escaping (ByteString) -> Void) {
    self.options = options
    self.host = host
    self.warn = warn
  }

  /// The lineage that all processes that execute the run have in common, and no other run has; and how many of them
  /// there were. nil when no run has begun.
  package var lineage: (name: ByteString, epoch: Int64)? {
    kept.map { kept in
      let own = Self.lineage(kept.seed, kept.id, 1)
      return ("\(own.hexadecimal)\(Self.lineage(own, kept.id, 2).hexadecimal)", kept.epoch)
    }
  }

  /// The folder of the store.
  package var folder: ByteString { options.folder }
  /// The id of the run in the store; nil when none has begun.
  package var id: ByteString? { kept?.id }

  /// Whether the run was continued by its id: the latest of the script may be another one.
  package var continuesNamedRun: Bool {
    if case .run = options.resumption { true } else { false }
  }

  /// How much of an earlier process was kept, and how much executed again and why; nil for a run that begins. A script
  /// that continues by itself, as one that waits for days does, says so only if finished ops are executed again.
  package var summary: ByteString? {
    guard !isRehearsal, let keeper = keeper as? Keeper else { return nil }
    return isOfScript && !keeper.repeatsFinished ? nil : keeper.summary
  }
  /// The problem of a decision about an op that nothing was decided about: no op has its name. nil without one.
  package var problemOfSettlements: ByteString? {
    guard let keeper = keeper as? Keeper, let name = keeper.unmetSettlements.min(), let id else {
      return nil
    }
    let known = keeper.namesOfOnce
    let shown = known.prefix(5).map { "'\($0)'" as ByteString }.joined(separator: ", ")
    let rest: ByteString = known.count > 5 ? " and \(known.count - 5) more" : ""
    let there: ByteString =
      known.isEmpty
      ? "none has been executed only once" : "executed only once: \(shown)\(rest)"
    return "no op of run \(id) that was reached is named '\(name)'; \(there)"
  }

  /// Whether the script has asked for it, not the person who runs it.
  var isOfScript = false

  /// Whether there is something to resume: a run has begun and hasn't been ended.
  package var isOpen: Bool { kept != nil && !isEnded }
  private var isEnded = false

  package func runBegins(_ run: Run) -> Bool {
    if keepsAll { keep(run) }
    return true
  }

  /// Keeps a run that is about to be executed.
  func keep(_ run: Run) {
    // Runs of tests aren't kept: the loop of the script stands still meanwhile.
    if run.keeper != nil || isEnded || options.isDry || !host.waitingLoops.isEmpty { return }
    let keeper = keeper ?? open()
    self.keeper = keeper
    run.keeper = keeper
    run.isRehearsal = isRehearsal
    pendingCount += 1
    if let kept {
      let count = counts[run.name, default: 0]
      counts[run.name] = count + 1
      run.lineage = Self.lineage(kept.seed, run.name, count)
    }
  }

  package func runEnded(_ run: Run) {
    if run.isRehearsal { endRehearsal(of: run) }
    if run.keeper != nil { pendingCount -= 1 }
  }

  /// The script calls `os.exit`: code of a run that does so pauses the run, whatever the status.
  package func willExit() {
    if host.workPlace != nil { isPausedByExit = true }
  }
  private var isPausedByExit = false

  /// The process is about to end, and another one continues: nothing that has finished is undone.
  func suspend() {
    (keeper as? Keeper)?.isSuspended = true
  }

  /// Takes the options of `flow.keep`, as far as the person who runs the script gives none. Throws if it comes too
  /// late.
  func adopt(folder: ByteString?, trustsCode: Bool, within: Age?) throws {
    options.within = options.within ?? within
    if let folder, !options.isFolderGiven, folder != options.folder {
      guard keeper == nil else {
        throw FlowError(
          .error,
          "runs are kept in '\(options.folder)' already: call flow.keep before the first of them")
      }
      options.folder = folder
      if let name = options.scriptName { options.script = name(folder) }
    }
    if trustsCode { options.trustsCode = true }
  }

  private func open() -> any RunKeeper {
    do {
      let copy = try openCopy()
      // Its writer has a connection of its own.
      defer { copy?.close() }
      if case .nothing = options.choice { return try openRehearsal() }
      let store = try copy?.store ?? JournalStore(folder: options.folder, isReadOnly: false)
      self.store = store
      var kept: KeptRun?
      switch options.resumption {
      case _ where options.choice.isOfKeptRun:
        let id = try runToRepeat(in: store)
        try checkChoice(id, store)
        kept = try resume(id, store, copy)
      case .none: break
      case .latest: if try mayContinue(store, copy) { kept = try resume(nil, store, copy) }
      case .run(let id): kept = try resume(id, store, copy)
      }
      let run = try kept ?? begin(store, copy)
      let settlements = options.settlements.compactMapValues {
        Keeper.Settlement(rawValue: $0.description)
      }
      return Keeper(
        run, in: store, values: ScriptValues(host), trustsCode: options.trustsCode,
        usesCache: options.usesCache, cipher: try cipher(of: store),
        settlements: settlements, choice: options.choice.ofOps, warn: warn)
    } catch {
      let error = FlowError.from(error)
      if error.storeProblem == .missing, continuesNamedRun { onMissingRun?(error, ownRuns) }
      return RefusingKeeper(error)
    }
  }

  /// The ids of the runs of the script, the oldest first; nil if they aren't known.
  private var ownRuns: [ByteString]? {
    if options.mirror != nil { return nil }
    let runs = try? JournalStore(folder: options.folder, isReadOnly: true).runs()
    return runs?.filter { $0.script == options.script }.map(\.id)
  }

  /// Whether the latest run that hasn't finished, if there is one, has changed lately enough to be continued; says so
  /// otherwise.
  func mayContinue(_ store: JournalStore, _ copy: MirroredStore? = nil) throws(FlowError) -> Bool {
    guard let within = options.within else { return true }
    let latest: ByteString?
    if let copy {
      latest = try copy.fetch(nil)
    } else {
      latest = try store.unfinishedRun(of: options.script)
    }
    guard let latest, Double(time(nil)) - (try store.run(latest).changed) > within.seconds else {
      return true
    }
    warn(
      "run \(latest) changed last more than \(within.text) ago: a new run begins; --resume=\(latest) continues it"
    )
    return false
  }

  private func resume(
    _ id: ByteString?, _ store: JournalStore, _ copy: MirroredStore?
  ) throws -> KeptRun? {
    guard let copy else { return try store.resume(id, script: options.script, on: host.loop) }
    let kept = try copy.resume(id, on: host.loop)
    if let kept { try copy.prune(sparing: kept.id) }
    return kept
  }

  private func begin(_ store: JournalStore, _ copy: MirroredStore?) throws -> KeptRun {
    let words = options.words.map { host.loop.secrets.redacted($0) }
    guard let copy else {
      return try store.begin(script: options.script, words: words, on: host.loop)
    }
    let kept = try copy.begin(words: words, on: host.loop)
    try copy.prune(sparing: kept.id)
    return kept
  }

  /// The cipher of secrets, in a store.
  func cipher(of store: JournalStore) throws -> StoreCipher? {
    try options.storeKey.map { try StoreCipher(text: $0, of: store) }
  }

  /// Records that the script has ended, and waits until that and all before it is in the store; further calls do
  /// nothing. A run pauses if a flow of it still executes at a successful end, or because an op has called `os.exit`.
  /// Runs that are too old, or too many, are removed from the store before. The process should end at once after this.
  ///
  /// - Throws: The reason why it isn't in the store.
  package func end(_ end: KeptRunEnd) throws(FlowError) {
    if isEnded { return }
    isEnded = true
    guard let store, let keeper = keeper as? Keeper, let kept else { return }
    let isPaused = pendingCount > 0 && (end == .finished || isPausedByExit)
    let present = isPaused ? .stopped : end
    // Of a rehearsal only what a person has chosen was executed.
    try keeper.end(isRehearsal ? kept.earlierEnd : present) {
      do throws(FlowError) {
        _ = try store.prune(limit: options.storeLimit, sparing: kept.id)
        try store.emptyLog()
      } catch {
        warn("the store of kept runs can't be tidied up: \(error.message)")
      }
    }
  }

  private static func lineage(_ seed: UInt64, _ name: ByteString, _ count: UInt64) -> UInt64 {
    var hash = (seed ^ count).spread
    for byte in name.bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash.spread
  }
}

/// Refuses all ops, because the store can't be used: nothing is executed unrecorded.
private final class RefusingKeeper: RunKeeper {
  private let error: FlowError

  init(_ error: FlowError) {
    self.error = error
  }

  var runID: ByteString? { nil }
  var isSuspended: Bool { false }
  func decide(_ work: KeptWork) -> KeepingDecision { .refuse(error) }
}

/// How the runs of a host's script are kept.
package final class HostKeeping: HostService {
  /// The keeping of the runs; nil for none.
  fileprivate(set) var present: ScriptKeeping?
  /// How runs are kept that the script itself wants to be kept; nil, the default, refuses that.
  package var defaults: (() -> ScriptKeeping.Options)?
  /// Returns the command that executes an op of a run again, by its path, with the code of now; nil: nothing does that.
  package var command: ((_ run: KeptRunSummary, _ store: ByteString, _ op: ByteString) -> Command)?

  package struct Command {
    package var words: [ByteString]
    /// Variables that the environment of this process hasn't, because they are secret.
    package var environment: [ByteString: ByteString]

    package init(words: [ByteString], environment: [ByteString: ByteString]) {
      self.words = words
      self.environment = environment
    }
  }

  /// Called when runs of the script begin to be kept.
  package var onBegin: ((ScriptKeeping) -> Void)?
}

extension ScriptHost {
  package var hostKeeping: HostKeeping { service { HostKeeping() } }

  /// The keeping of the script's runs; nil for none.
  package var keeping: ScriptKeeping? { existing(HostKeeping.self)?.present }

  /// Keeps all runs that the script starts from now on.
  ///
  /// - Parameters:
  ///   - options: How.
  ///   - warn: Called with a sentence for the person who runs the script.
  package func keep(_ options: ScriptKeeping.Options, warn: @escaping (ByteString) -> Void) {
    makeKeeping(options, warn: warn).keepsAll = true
  }

  @discardableResult
  private func makeKeeping(
    _ options: ScriptKeeping.Options, warn: @escaping (ByteString) -> Void
  ) -> ScriptKeeping {
    if let keeping { return keeping }
    let keeping = ScriptKeeping(options, self, warn: warn)
    hostKeeping.present = keeping
    (waitingLoops.first ?? loop).runMonitors.append(keeping)
    hostKeeping.onBegin?(keeping)
    return keeping
  }

  /// The keeping of a script that asks for it itself, with the options that the program has for that, and continuing
  /// this run unless the program has chosen another one.
  func keepingOfScript(
    resuming resumption: ScriptKeeping.Resumption = .none
  ) throws -> ScriptKeeping {
    if let keeping { return keeping }
    guard !isWorker, var options = hostKeeping.defaults?() else {
      throw FlowError.usage(
        isWorker
          ? "runs of a worker can't be kept: keep the one that starts the op"
          : "runs can't be kept: there is no script file to keep them for")
    }
    options.resumption = resumption
    let keeping = makeKeeping(options) { [events] in events.onWarning?($0) }
    keeping.isOfScript = true
    return keeping
  }
}

// Runs that a server keeps as well.
extension ScriptKeeping {
  /// Opens the working copy of the runs on a server, with the run of which something is rehearsed or repeated; nil
  /// without a server.
  func openCopy() throws -> MirroredStore? {
    guard let mirror = options.mirror else { return nil }
    let copy = try MirroredStore(mirror, in: options.folder)
    do {
      options.folder = copy.store.folder
      options.script = mirror.script
      try choose(in: copy)
      return copy
    } catch {
      copy.close()
      throw error
    }
  }

  /// Chooses the run in the order of the server: the working copy's may be another one.
  private func choose(in copy: MirroredStore) throws {
    switch (options.choice, options.resumption) {
    case (_, .run(let id)): if isRehearsal || options.choice.isOfKeptRun { _ = try copy.fetch(id) }
    case (.only, _), (.from, _):
      if let id = try copy.fetch(nil, orLast: true) { options.resumption = .run(id) }
    case (.nothing, .latest):
      let id = try mayContinue(copy.store, copy) ? copy.fetch(nil) : nil
      options.resumption = id.map { .run($0) } ?? .none
    case (_, .none), (.changed, _): break
    }
    guard case .latest = options.resumption, try copy.hasUnreadableRuns() else { return }
    warn(
      "the server has runs of '\(options.script)' that another FLOWLUA_REMOTE_KEY seals, or none: "
        + "they can't be continued here")
  }
}
