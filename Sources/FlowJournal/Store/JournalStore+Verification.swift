package import FlowEngine

/// Checking that a store is what was written.
extension JournalStore {
  /// Something in a store that isn't what was written.
  package struct Damage: Sendable {
    /// The run that it is about; nil for the store as a whole.
    package let run: ByteString?
    package let message: ByteString
  }

  /// Reads everything, and returns what isn't as it was written; blocks for as long as that takes.
  package func verify() -> [Damage] {
    var damages: [Damage] = []
    func attempt(_ run: ByteString?, _ body: () throws(FlowError) -> Void) {
      do throws(FlowError) { try body() } catch {
        damages.append(Damage(run: run, message: error.messageBytes))
      }
    }
    attempt(nil) { () throws(FlowError) in
      if let message = try ChangeLogCheck.problem(in: folder) {
        damages.append(Damage(run: nil, message: message))
      }
    }
    attempt(nil) { () throws(FlowError) in
      let check = try database.prepare("PRAGMA integrity_check(20)")
      defer { check.reset() }
      while try check.step() {
        let text = check.text(0)
        if text != "ok" { damages.append(Damage(run: nil, message: "database: \(text)")) }
      }
    }
    attempt(nil) { () throws(FlowError) in
      if try StoreSchema.hasFiles(database), try !files.isSound() {
        let message = "the known content of a file isn't what was written" as ByteString
        damages.append(Damage(run: nil, message: message))
      }
    }
    attempt(nil) { () throws(FlowError) in
      if try StoreSchema.hasCodes(database), try !codes.isSound() {
        let message = "what code consists of isn't what was written" as ByteString
        damages.append(Damage(run: nil, message: message))
      }
    }
    var runs: [RunRow] = []
    attempt(nil) { () throws(FlowError) in runs = try rows() }
    for run in runs {
      if !run.isSound {
        damages.append(Damage(run: run.name, message: "the run itself isn't what was written"))
      }
      attempt(run.name) { () throws(FlowError) in
        let first = RecordTable.numbers(of: run.number).lowerBound
        try table.read(run: run.number) { id, record throws(FlowError) in
          guard let record else {
            let message = "record \(id - first) isn't what was written" as ByteString
            damages.append(Damage(run: run.name, message: message))
            return
          }
          for write in record.writes {
            attempt(run.name) { () throws(FlowError) in _ = try load(write) }
          }
        }
      }
    }
    return damages
  }
}
