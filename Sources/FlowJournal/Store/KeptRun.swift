package import FlowEngine

/// The records that a script keeps, over all processes that execute it: this process executes it.
///
/// Confined to the loop's thread. Records that are written within a turn of the loop, and until the disk has the
/// earlier ones, are one transaction.
package final class KeptRun {
  /// The id, such as `r7k2`.
  package let id: ByteString
  /// How many processes have executed the run, this one included.
  package let epoch: Int64
  /// A random number of the run, the same in each process.
  package let seed: UInt64
  /// How the process before had ended its execution.
  package internal(set) var earlierEnd = KeptRunEnd.stopped
  /// The records of the processes before, the oldest first. May be emptied when they aren't needed any more.
  package var records: [OpRecord]
  /// The store of the run.
  package let store: JournalStore
  /// The first error of a write: nothing is written after it.
  package var failure: FlowError? { firstFailure.error }

  /// Apart, because completions may come when the run is no more.
  private final class FirstFailure {
    var error: FlowError?

    func note(_ error: FlowError) {
      if self.error == nil { self.error = error }
    }
  }

  private let firstFailure = FirstFailure()

  /// How many transactions this process has given to the disk for the run.
  package var transactions: Int { writer.transactions }

  let loop: FlowEventLoop
  private let writer: RunWriter
  private let completions: RunCompletions
  // Unchecked exclusivity, here and below: see `OpKeeping`.
  @exclusivity(unchecked) private var nextNumber: Int64
  private let lastNumber: Int64
  /// The commands that the writer hasn't been given yet.
  @exclusivity(unchecked) private var batch: [RunCommand] = []
  let number: Int64
  private let isMirrored: Bool
  private var hasEnded = false
  private var isFinished = false
  private var isClosed = false

  init(
    id: ByteString, number: Int64, epoch: Int64, seed: UInt64, records: [OpRecord],
    mirror: MirrorTarget?, of store: JournalStore, on loop: FlowEventLoop
  ) {
    self.id = id
    self.epoch = epoch
    self.seed = seed
    self.records = records
    self.store = store
    self.loop = loop
    self.number = number
    isMirrored = mirror != nil
    let numbers = RecordTable.numbers(of: number)
    nextNumber = (records.last?.id ?? numbers.lowerBound) + 1
    lastNumber = numbers.upperBound - 1
    completions = RunCompletions.of(loop)
    writer = RunWriter(
      RunTarget(
        folder: store.folder, key: store.key, run: id, number: number, epoch: epoch,
        mirror: mirror),
      mailbox: loop.mailbox,
      completions: completions.add { [firstFailure] in firstFailure.note($0) })
    if mirror != nil { writer.begin() }
  }

  deinit { writer.stop() }

  /// Writes a record, or replaces the one of the same id.
  ///
  /// - Parameters:
  ///   - record: The record; its id is 0 if it is a new one.
  ///   - then: Called as a job of the loop after the record is on the disk, with nil, or when it isn't, with
  ///     the reason. Calls come in the order of the writes.
  /// - Returns: The id of the record.
  @discardableResult
  package func write(_ record: OpRecord, then: ((FlowError?) -> Void)? = nil) -> Int64 {
    var record = record
    if record.id == 0 {
      record.id = nextNumber
      nextNumber += 1
    }
    if record.id > lastNumber {
      misuse("a kept run has more than 1,099,511,627,775 records")
    }
    append(.record(record), then)
    return record.id
  }

  /// Writes the content of a file, so that the file isn't read again while its stamp is the same.
  func write(_ file: KnownFile) { append(.file(file), nil) }

  /// Writes what code consists of.
  func write(_ code: KnownCode) { append(.code(code), nil) }

  /// Writes that this process has ended its execution of the run, after everything before; another process
  /// may then continue it.
  ///
  /// - Parameters:
  ///   - end: How the script has ended.
  ///   - then: As for `write`.
  package func end(_ end: KeptRunEnd, then: ((FlowError?) -> Void)? = nil) {
    hasEnded = true
    isFinished = end == .finished
    append(.end(end), then)
  }

  /// Waits until everything is on the disk, and ends the thread that writes; a run without an `end` is left
  /// unfinished. Completions still come, as jobs of the loop, and `failure` is known at once.
  ///
  /// - Parameter tidy: Called when all is on the disk. A process that is killed before it returns hasn't finished the run:
  ///   it should end at once after this.
  package func close(_ tidy: () -> Void = {}) {
    loop.checkThread()
    if isClosed { return }
    if !hasEnded { end(.stopped) }
    isClosed = true
    handOver()
    writer.stopAndWait()
    completions.close(writer.completions)
    if let error = writer.failure { firstFailure.note(error) }
    tidy()
    guard isFinished, !isMirrored, failure == nil else { return }
    do throws(FlowError) {
      try store.finish(number, epoch)
    } catch {
      firstFailure.note(error)
    }
  }

  private func append(_ command: RunCommand, _ then: ((FlowError?) -> Void)?) {
    loop.checkThread()
    guard !isClosed else { misuse("a kept run was written to after its close") }
    completions.expect(of: writer.completions, then)
    batch.append(command)
    // After the jobs that are ready now: items of a group then share a transaction.
    if batch.count == 1 { loop.enqueue { self.writeOrHandOver() } }
  }

  /// Writes the batch here if the loop would only sleep until it is written.
  private func writeOrHandOver() {
    guard !batch.isEmpty, loop.isQuiet(for: RunWriter.shortTime), writer.writeHere(batch) else {
      handOver()
      return
    }
    let count = batch.count
    batch = []
    completions.complete(count, of: writer.completions, with: nil)
  }

  private func handOver() {
    if batch.isEmpty { return }
    let commands = batch
    batch = []
    writer.submit(commands)
  }
}
