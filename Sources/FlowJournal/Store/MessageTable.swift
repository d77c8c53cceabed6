package import FlowEngine

/// Messages to runs, and the waits for them, as rows of tables of one connection.
final class MessageTable {
  private let database: StoreDatabase
  private let digests: DigestMaker

  init(_ database: StoreDatabase, _ digests: DigestMaker) {
    self.database = database
    self.digests = digests
  }

  /// How the value of a message is written.
  enum Form: Int64 {
    /// As a word of a command line.
    case text = 0
    /// As values are kept.
    case value = 1
  }

  struct Row {
    let id: Int64
    let form: Form
    let bytes: ByteString
  }

  private static let columns: ByteString = "id, run, name, target, form, value, sent, sum, taken"

  /// Adds a message to a run.
  func add(
    to run: Int64, _ name: ByteString, _ form: Form, _ bytes: ByteString, target: Int64
  ) throws(FlowError) {
    let now = WallClock.now()
    try database.prepare(
      "INSERT INTO messages(run, name, target, form, value, sent, sum) "
        + "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", run, name, target, form.rawValue, bytes, now,
      try sum(run, name, target, form.rawValue, bytes, now)
    ).run()
  }

  /// The message that a wait has taken; nil if it hasn't.
  func taken(by wait: ByteString, of run: Int64) throws(FlowError) -> Row? {
    let select = try database.prepare(
      "SELECT \(Self.columns) FROM messages WHERE run = ?1 AND taken = ?2", run, wait)
    defer { select.reset() }
    return try select.step() ? try row(select) : nil
  }

  /// The oldest message of a name that no wait has taken, for one of these runs of the script.
  func next(
    _ name: ByteString, of run: Int64, targets: Set<Int64>
  ) throws(FlowError) -> Row? {
    let select = try database.prepare(
      "SELECT \(Self.columns) FROM messages "
        + "WHERE run = ?1 AND name = ?2 AND taken IS NULL ORDER BY id", run, name)
    defer { select.reset() }
    while try select.step() {
      let target = select.integer(3)
      if target == 0 || targets.contains(target) { return try row(select) }
    }
    return nil
  }

  /// Notes that a wait has taken a message.
  func take(_ id: Int64, by wait: ByteString) throws(FlowError) {
    try database.prepare("UPDATE messages SET taken = ?2 WHERE id = ?1", id, wait).run()
  }

  /// Drops the message that a wait has taken: from then on no wait has it.
  func drop(takenBy wait: ByteString, of run: Int64) throws(FlowError) {
    try database.prepare("UPDATE messages SET taken = x'' WHERE run = ?1 AND taken = ?2", run, wait)
      .run()
  }

  /// Drops all messages of a name that no wait has taken.
  func dropOpen(_ name: ByteString, of run: Int64) throws(FlowError) {
    try database.prepare(
      "UPDATE messages SET taken = x'' WHERE run = ?1 AND name = ?2 AND taken IS NULL", run, name
    ).run()
  }

  private func row(_ row: StoreStatement) throws(FlowError) -> Row {
    let bytes = row.text(5)
    guard let form = Form(rawValue: row.integer(4)), try isSound(row) else {
      throw StoreProblem.damaged.error(
        "message \(row.integer(0)) in the store '\(database.folder)' isn't what was written")
    }
    return Row(id: row.integer(0), form: form, bytes: bytes)
  }

  private func isSound(_ row: StoreStatement) throws(FlowError) -> Bool {
    try row.digest(7)
      == sum(
        row.integer(1), row.text(2), row.integer(3), row.integer(4), row.text(5), row.double(6))
  }

  private func sum(
    _ run: Int64, _ name: ByteString, _ target: Int64, _ form: Int64, _ bytes: ByteString,
    _ sent: Double
  ) throws(FlowError) -> Digest {
    var sum = RowSum()
    for number in [run, target, form] { sum.add(number) }
    sum.add(name)
    sum.add(bytes)
    sum.add(sent)
    return try digests.digest(of: sum.bytes)
  }

  /// Whether all messages are what was written.
  func isSound() throws(FlowError) -> Bool {
    let select = try database.prepare("SELECT \(Self.columns) FROM messages")
    defer { select.reset() }
    while try select.step() {
      if try !isSound(select) { return false }
    }
    return true
  }

  // MARK: Waits

  /// Notes a wait of the process with this epoch; returns when it began, perhaps in an earlier process.
  func begin(
    _ wait: KeptWait, of run: Int64, epoch: Int64
  ) throws(FlowError) -> Double {
    try database.prepare(
      "INSERT INTO waits(run, wait, name, ask, type, began, epoch) "
        + "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) "
        + "ON CONFLICT(run, wait) DO UPDATE SET epoch = ?7, ask = ?4, type = ?5", run, wait.wait,
      wait.name, wait.ask, wait.type, wait.began, epoch
    ).run()
    let select = try database.prepare(
      "SELECT began FROM waits WHERE run = ?1 AND wait = ?2", run, wait.wait)
    return try select.first { $0.double(0) } ?? wait.began
  }

  /// The epoch of a wait that has timed out: no process lists it.
  private static let timedOut: Int64 = -1

  /// When a wait that has timed out began; nil for another one.
  func timedOut(_ wait: ByteString, of run: Int64) throws(FlowError) -> Double? {
    try database.prepare(
      "SELECT began FROM waits WHERE run = ?1 AND wait = ?2 AND epoch = ?3", run, wait,
      Self.timedOut
    ).first { $0.double(0) }
  }

  func setTimedOut(_ wait: ByteString, of run: Int64) throws(FlowError) {
    try database.prepare(
      "UPDATE waits SET epoch = ?3 WHERE run = ?1 AND wait = ?2", run, wait, Self.timedOut
    ).run()
  }

  func end(_ wait: ByteString, of run: Int64) throws(FlowError) {
    try database.prepare("DELETE FROM waits WHERE run = ?1 AND wait = ?2", run, wait).run()
  }

  /// The waits of a run, as the process of this epoch has noted them, the oldest first.
  func waits(of run: Int64, epoch: Int64) throws(FlowError) -> [KeptWait] {
    let select = try database.prepare(
      "SELECT wait, name, ask, type, began FROM waits WHERE run = ?1 AND epoch = ?2 ORDER BY began",
      run, epoch)
    var waits: [KeptWait] = []
    defer { select.reset() }
    while try select.step() {
      waits.append(
        KeptWait(
          wait: select.text(0), name: select.text(1), ask: select.optionalText(2),
          type: select.optionalText(3), began: select.double(4)))
    }
    return waits
  }

  /// Removes the messages and waits of a run.
  func remove(_ run: Int64) throws(FlowError) {
    for table in ["messages", "waits"] as [ByteString] {
      try database.prepare("DELETE FROM \(table) WHERE run = ?1", run).run()
    }
  }
}

/// Something that a run waits for.
package struct KeptWait: Sendable {
  /// Its name in the store.
  package var wait: ByteString
  /// The name of the message.
  package var name: ByteString
  /// The question for a person.
  package var ask: ByteString?
  /// The type of the value, as it is written.
  package var type: ByteString?
  /// Seconds since 1970.
  package var began: Double

  package init(
    wait: ByteString, name: ByteString, ask: ByteString?, type: ByteString?, began: Double
  ) {
    self.wait = wait
    self.name = name
    self.ask = ask
    self.type = type
    self.began = began
  }

  /// A word that could be sent.
  package var example: ByteString {
    switch type {
    case "boolean"?: return "true"
    case "integer"?, "number"?: return "1"
    default: break
    }
    let parsed = try? type.map { text throws(TypeSyntaxError) in try FlowValueType.parse(text) }
    return parsed?.choices.first ?? "VALUE"
  }
}
