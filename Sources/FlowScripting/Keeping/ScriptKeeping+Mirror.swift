internal import FlowEngine
internal import FlowJournal

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

  /// Chooses the run in the order of the server: that of the working copy may be another one.
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
