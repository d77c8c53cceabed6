package import FlowEngine

/// Messages of other processes.
extension JournalStore {
  /// Sends messages to a run, which its process takes, now or when it is continued. They are in the store when this
  /// returns, all of them or none.
  ///
  /// - Throws: A `FlowError` when there is no run of this id, it has finished, or it waits for a value of another type.
  package func send(
    _ messages: [(name: ByteString, text: ByteString)], to id: ByteString
  ) throws(FlowError) {
    try checkWritable()
    try database.transaction { () throws(FlowError) in
      let run = try open(id)
      let waits = try self.messages.waits(of: run.number, epoch: run.lease.epoch)
      for (name, text) in messages {
        let similar = waits.filter { $0.name.isQuestion(about: name) && $0.mayTake(text) }
        if !similar.isEmpty, !waits.contains(where: { $0.name == name }) {
          let shown = similar.map(\.name).prefix(3).map { "<\($0)>" }.joined(separator: ", ")
          throw StoreProblem.unsuitable.error(
            "run \(id) waits for \(shown)\(similar.count > 3 ? ", …" : ""), not for <\(name)>")
        }
        for wait in waits where wait.name == name {
          guard let written = wait.type, let type = try? FlowValueType.parse(written) else {
            continue
          }
          if Message.value(of: text, for: type) == nil {
            throw StoreProblem.unsuitable.error(
              "run \(id) waits for <\(name)> of type \(written), not '\(text)'")
          }
        }
        try self.messages.add(to: run.number, name, .text, text, target: 0)
      }
    }
  }

  /// Sends a message with a value.
  package func send(
    _ name: ByteString, encoded bytes: [UInt8], to id: ByteString
  ) throws(FlowError) {
    try checkWritable()
    try database.transaction { () throws(FlowError) in
      try messages.add(to: try open(id).number, name, .value, ByteString(bytes), target: 0)
    }
  }

  private func open(_ id: ByteString) throws(FlowError) -> RunRow {
    let run = try row(of: id)
    if run.isFinished {
      throw StoreProblem.unsuitable.error("run \(id) has finished: it takes no messages")
    }
    return run
  }

  /// The waits of a run for messages, the oldest first.
  package func waits(of id: ByteString) throws(FlowError) -> [KeptWait] {
    guard try StoreSchema.hasMessages(database) else { return [] }
    let run = try row(of: id)
    return run.isFinished ? [] : try messages.waits(of: run.number, epoch: run.lease.epoch)
  }
}

extension KeptWait {
  /// Whether it is a question that takes such a text; `done` isn't offered when a value is lost.
  fileprivate func mayTake(_ text: ByteString) -> Bool {
    hasChoice(text) || text.equals("done") && hasChoice("again")
  }

  /// Whether a text is one of a few that it takes.
  fileprivate func hasChoice(_ text: ByteString) -> Bool {
    let parsed = try? type.map { type throws(TypeSyntaxError) in try FlowValueType.parse(type) }
    return parsed?.choices.contains(text) == true
  }
}

extension ByteString {
  /// Whether it is the name of a question about an item of an op, or about one of several ops of a name.
  fileprivate func isQuestion(about name: ByteString) -> Bool {
    let path: ByteString = "/\(self)"
    return path.contains("/\(name) #") || path.hasSuffix("/\(name)")
  }
}
