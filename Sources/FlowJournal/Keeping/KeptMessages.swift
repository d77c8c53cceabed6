internal import FlowSystem
internal import FlowEngine

/// The messages of a kept run: each is in the store before it is delivered, and that it was taken is there before the
/// wait has it. An op that another process executes again takes what it had taken.
///
/// Confined to the loop's thread, on which it writes: messages are few.
final class KeptMessages: MessageStore {
  private let kept: KeptRun
  private let values: any KeptValues
  private let isEnding: () -> Bool
  private let table: MessageTable
  private let database: StoreDatabase
  private var version: Int64 = -1
  /// Whether another process was writing for too long at the last look.
  private var isBusy = false
  /// How long a look waits for another process that writes, in milliseconds: the next look is soon.
  private static let patience: Int32 = 100

  /// - Parameters:
  ///   - kept: The run.
  ///   - values: Values as bytes.
  ///   - isEnding: Whether this process is about to end, and another one continues.
  init(_ kept: KeptRun, _ values: any KeptValues, isEnding: @escaping () -> Bool) {
    self.kept = kept
    self.values = values
    self.isEnding = isEnding
    database = kept.store.database
    table = kept.store.messages
  }

  var isShared: Bool { true }
  var isSuspended: Bool { isEnding() }

  func mayHaveNew() -> Bool {
    // It changes with each commit of another connection.
    guard let present = try? database.prepare("PRAGMA data_version").first({ $0.integer(0) })
    else { return true }
    defer { version = present }
    return present != version
  }

  func mayPass(_ error: any Error) -> Bool {
    guard FlowError.from(error).storeProblem == .busy else { return false }
    isBusy = true
    version = -1
    return true
  }

  func add(_ message: Message, waits: Bool) throws {
    let (form, bytes): (MessageTable.Form, ByteString) =
      switch message.content {
      case .text(let text): (.text, text)
      case .value(let value): (.value, ByteString(try values.encode(value)))
      }
    let isSecret = if case .value(let value) = message.content { value.isSecret } else { false }
    if isSecret || kept.loop.secrets.occur(in: bytes) {
      throw FlowError(.error, "<\(message.name)> contains the text of a secret, which isn't kept")
    }
    try write(patience: waits ? JournalStore.patience : 0) { () throws(FlowError) in
      try table.add(
        to: kept.number, message.name, form, bytes, target: Int64(bitPattern: message.run))
    }
  }

  func begin(_ request: MessageRequest, at now: Double) throws -> Double? {
    let isWritten = request.type.map { !$0.isTested } ?? false
    let wait = KeptWait(
      wait: request.wait, name: request.name,
      ask: request.ask.map { kept.loop.secrets.redacted($0) },
      type: isWritten ? request.type?.name : nil, began: WallClock.now())
    let isVirtual = kept.loop.timeSource.isVirtual
    return try write { () throws(FlowError) in
      if let began = try table.timedOut(wait.wait, of: kept.number) {
        // The timeout may be a longer one now. A virtual clock says nothing about the time that has passed.
        if request.isContinued, let timeout = request.timeout,
          isVirtual || began + timeout.inSeconds <= now
        {
          return nil
        }
        try table.end(wait.wait, of: kept.number)
      }
      return try table.begin(wait, of: kept.number, epoch: kept.epoch)
    }
  }

  func take(_ request: MessageRequest) throws -> Message? {
    let row = try write { () throws(FlowError) -> MessageTable.Row? in
      if let known = try table.taken(by: request.wait, of: kept.number) { return known }
      let targets = Set(request.runs.map { Int64(bitPattern: $0) })
      guard let next = try table.next(request.name, of: kept.number, targets: targets) else {
        return nil
      }
      try table.take(next.id, by: request.wait)
      return next
    }
    guard let row else { return nil }
    switch row.form {
    case .text: return Message(name: request.name, content: .text(row.bytes))
    case .value:
      return Message(
        name: request.name, content: .value(try values.decode(row.bytes.bytes)))
    }
  }

  func drop(_ request: MessageRequest) throws {
    try write { () throws(FlowError) in try table.drop(takenBy: request.wait, of: kept.number) }
  }

  /// A question about an effect has its answer: others that were sent to it aren't for a later question. One that isn't
  /// final is forgotten, so that the next process asks again.
  func noteAnswer(_ request: MessageRequest, isFinal: Bool) {
    // An answer that stays there is only one too many.
    try? write { () throws(FlowError) in
      try table.dropOpen(request.name, of: kept.number)
      if !isFinal { try table.drop(takenBy: request.wait, of: kept.number) }
    }
  }

  func end(_ request: MessageRequest, isTimedOut: Bool) {
    // A wait that stays there is only shown too long.
    try? write { () throws(FlowError) in
      if isTimedOut {
        try table.setTimedOut(request.wait, of: kept.number)
      } else {
        try table.end(request.wait, of: kept.number)
      }
    }
  }

  /// Writes while the run is this process's.
  private func write<Result>(
    patience: Int32? = nil, _ body: () throws(FlowError) -> Result
  ) throws(FlowError) -> Result {
    if let failure = kept.failure { throw failure }
    database.setPatience(patience ?? (isBusy ? 0 : Self.patience))
    defer { database.setPatience(JournalStore.patience) }
    let result = try database.transaction { () throws(FlowError) in
      let lease = try kept.store.row(of: kept.id).lease
      guard lease.epoch == kept.epoch else {
        throw StoreProblem.fenced.error(
          "run \(kept.id) was continued by process \(lease.holder.pid) on \(lease.holder.host), "
            + "so this process can't take messages any more")
      }
      return try body()
    }
    isBusy = false
    return result
  }
}
