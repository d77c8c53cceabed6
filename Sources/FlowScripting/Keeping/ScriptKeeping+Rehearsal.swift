package import FlowEngine
package import FlowJournal

// Runs of which only what a person has chosen is executed, or nothing.
extension ScriptKeeping {
  /// Whether runs are rehearsed.
  var isRehearsal: Bool {
    switch options.choice {
    case .nothing, .only: true
    case .changed, .from: false
    }
  }

  /// The findings about the ops since the last call.
  package func takeRehearsal() -> KeptRehearsal {
    if let keeper = keeper as? Keeper {
      defer { keeper.rehearsal = KeptRehearsal() }
      return keeper.rehearsal
    }
    guard let keeper = keeper as? NewRunKeeper else { return KeptRehearsal() }
    defer { keeper.rehearsal = KeptRehearsal() }
    return keeper.rehearsal
  }

  /// The run of the store whose ops are executed again: the last one of the script, unless another one was named.
  func runToRepeat(in store: JournalStore) throws -> ByteString {
    if case .run(let id) = options.resumption { return id }
    if let id = try store.lastRun(of: options.script) { return id }
    throw FlowError(
      .error,
      "there is no run of '\(options.script)' in the store '\(options.folder)': execute it with --keep first"
    )
  }

  /// Refuses a name that no op of a finished run has: only its final steps would be executed, and the run would count as
  /// unfinished.
  func checkChoice(_ id: ByteString, _ store: JournalStore) throws {
    guard case .from(let name) = options.choice, case .finished = try store.run(id).state else {
      return
    }
    let records = try store.records(of: id)
    if records.contains(where: { $0.isWithin(name) }) { return }
    let error = FlowError(
      .error,
      "no op of run \(id), which has finished, is named '\(name)'\(Self.hint(name, records))")
    onWrongChoice?(error)
    throw error
  }

  /// ` (did you mean 'UploadOp'?)`, if an op of the present run is nearly named like one of these; empty otherwise.
  package func hint(for names: [ByteString]) -> ByteString {
    guard let id, let records = try? store?.records(of: id) else { return "" }
    return names.lazy.map { Self.hint($0, records) }.first { !$0.isEmpty } ?? ""
  }

  /// Whether an op of the present run has a name, or is within one that has it.
  package func hasOp(named name: ByteString) -> Bool {
    guard let id, let records = try? store?.records(of: id) else { return false }
    return records.contains { $0.isWithin(name) }
  }

  private static func hint(_ name: ByteString, _ records: [OpRecord]) -> ByteString {
    let near = NearestName.of(name, in: records.map(\.op))
    return near.map { " (did you mean '\($0)'?)" } ?? ""
  }

  /// Makes a keeper that writes nothing.
  func openRehearsal() throws -> any RunKeeper {
    let store: JournalStore
    do {
      store = try JournalStore(folder: options.folder, isReadOnly: true)
    } catch {
      guard error.storeProblem == .missing else { throw error }
      if case .run = options.resumption { throw error }
      return NewRunKeeper()
    }
    let id: ByteString? =
      switch options.resumption {
      case .run(let id): id
      case .latest: try mayContinue(store) ? store.unfinishedRun(of: options.script) : nil
      case .none: nil
      }
    return Keeper(
      rehearsing: id ?? "", try id.map { try store.records(of: $0) } ?? [], in: store,
      values: ScriptValues(host), trustsCode: options.trustsCode, usesCache: options.usesCache,
      cipher: try cipher(of: store))
  }

  /// Reports what was found out about a run.
  func endRehearsal(of run: Run) {
    let rehearsal = takeRehearsal()
    run.isOutcomeUnknown =
      run.error != nil || rehearsal.assumption != nil || rehearsal.executed > 0
    if run.error?.message == KeptRehearsal.refusal.message { run.markObserved() }
    onRehearsal?(run, rehearsal)
  }
}

extension ScriptKeeping.Choice {
  /// Whether it is about what a run of the store has.
  var isOfKeptRun: Bool {
    switch self {
    case .only, .from: true
    case .changed, .nothing: false
    }
  }

  var ofOps: OpChoice {
    switch self {
    case .changed: .changed
    case .nothing: .nothing
    case .only(let names): .only(names)
    case .from(let name): .from(name)
    }
  }
}

/// Rehearses a run when there is no store yet: everything would be executed.
private final class NewRunKeeper: RunKeeper {
  var rehearsal = KeptRehearsal()
  var runID: ByteString? { nil }
  var isSuspended: Bool { false }

  func decide(_ work: KeptWork) -> KeepingDecision {
    rehearsal.noteNew(work.names().path)
    return .fail(KeptRehearsal.refusal)
  }
}
