import FlowEngine
@testable import FlowJournal
import Testing

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// A store in a folder of its own, which is removed at the end.
final class TestStore {
  let parent: ByteString
  let folder: ByteString

  init() throws {
    parent = try Folders.makeTemporary()
    folder = parent + "/store"
  }

  deinit { try? FileRemoval.remove(parent, recursive: true, Cancellation()) }

  func open(isReadOnly: Bool = false) throws(FlowError) -> JournalStore {
    try JournalStore(folder: folder, isReadOnly: isReadOnly)
  }

  /// Runs SQL as another program would.
  func execute(_ text: ByteString) throws {
    let database = try StoreDatabase(folder: folder, mode: .readWrite, patience: 5000)
    try database.execute(text)
  }

  /// A number that a query has.
  func number(_ text: ByteString) throws -> Int64? {
    let database = try StoreDatabase(folder: folder, mode: .readWrite, patience: 5000)
    return try database.prepare(text).first { $0.integer(0) }
  }
}

/// A loop that the test has to shut down: what waits for a write holds it.
func makeLoop() -> FlowEventLoop { FlowEventLoop(timedBy: SystemClock()) }

/// A finished record with one write.
func makeRecord(_ path: ByteString, bytes: ByteString? = "value") -> OpRecord {
  OpRecord(
    path: path, op: "UploadOp", code: Digest(high: 1, low: 2),
    inputs: [KeptInput(name: "image", digest: Digest(high: 3, low: .max))], state: .finished,
    began: 1000.5, ended: 1001, key: "k", writes: [KeptWrite(name: "url", bytes: bytes)])
}

/// The problem of the error that `body` throws.
func problem(_ body: () throws -> Void) -> StoreProblem? {
  do { try body() } catch { return (error as? FlowError)?.storeProblem }
  return nil
}

extension KeptRun {
  /// Writes a record and waits until it is on the disk; returns the error.
  func writeAndWait(_ record: OpRecord, on loop: FlowEventLoop) -> FlowError? {
    var result: FlowError??
    write(record) { result = .some($0) }
    _ = loop.turn { result != nil }
    return result ?? nil
  }
}
