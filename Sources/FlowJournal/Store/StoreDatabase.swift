internal import CSQLite
internal import FlowEngine
internal import FlowSystem

/// A connection to the database of a store.
///
/// One thread uses it at a time.
final class StoreDatabase {
  /// The folder of the store, for messages.
  let folder: ByteString
  private let raw: OpaquePointer
  private var statements: [ByteString: StoreStatement] = [:]

  enum Mode {
    case readOnly
    /// As `readOnly`, for a folder in which nothing can be written: nothing may change meanwhile.
    case immutable
    case readWrite
  }

  /// Opens the database of a folder; waits for another process that writes at most this many milliseconds.
  init(folder: ByteString, mode: Mode, patience: Int32) throws(FlowError) {
    if let problem = csqlite_load() {
      throw StoreProblem.other.error("can't keep a run: \(ByteString(String(cString: problem)))")
    }
    self.folder = folder
    let path = mode == .immutable ? Self.immutableName(of: folder) : folder + "/store.sqlite"
    let access =
      mode == .readWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
    let flags = access | SQLITE_OPEN_NOMUTEX | (mode == .immutable ? SQLITE_OPEN_URI : 0)
    var raw: OpaquePointer?
    guard let code = path.withCString({ csqlite_open($0, &raw, flags) }) else {
      throw StoreProblem.other.error("the path '\(folder.escapingNUL)' has a NUL byte in it")
    }
    guard let raw else {
      throw StoreProblem.other.error("can't open the store '\(folder)': no memory")
    }
    self.raw = raw
    if code != SQLITE_OK { throw failure("open") }
    setPatience(patience)
  }

  /// Sets how long a call waits for another process that writes, in milliseconds.
  func setPatience(_ milliseconds: Int32) { csqlite_busy_timeout(raw, milliseconds) }

  deinit {
    for statement in statements.values { statement.finalize() }
    csqlite_close(raw)
  }

  /// The URI of a database that nobody writes.
  private static func immutableName(of folder: ByteString) -> ByteString {
    let digits = "0123456789ABCDEF".bytes
    var bytes = "file:".bytes
    for byte in (folder + "/store.sqlite").bytes {
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"):
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: bytes.append(byte)
      }
    }
    return ByteString(bytes + "?immutable=1".bytes)
  }

  /// Whether the file isn't any more the one of its path.
  var hasMoved: Bool { csqlite_has_moved(raw) }

  /// Takes back what a process that was killed hadn't finished; reading does it.
  func recover() throws(FlowError) {
    _ = try prepare("PRAGMA user_version").first { $0.integer(0) }
  }

  /// A compiled statement with values for its parameters, in their order. It lives as long as the connection, and is the
  /// same one for the same text.
  func prepare(
    _ text: ByteString, _ values: (any StoreValue)?...
  ) throws(FlowError) -> StoreStatement {
    let statement: StoreStatement
    if let known = statements[text] {
      statement = known
    } else {
      statement = try compile(text)
      statements[text] = statement
    }
    for (index, value) in values.enumerated() { value?.bind(to: statement, Int32(index + 1)) }
    return statement
  }

  /// Executes a statement once.
  func execute(_ text: ByteString) throws(FlowError) {
    let statement = try compile(text)
    defer { statement.finalize() }
    try statement.run()
    Failpoint.pass()
  }

  private func compile(_ text: ByteString) throws(FlowError) -> StoreStatement {
    var statement: OpaquePointer?
    let code = text.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        csqlite_prepare(raw, $0.baseAddress, $0.count, &statement)
      }
    }
    guard code == SQLITE_OK, let statement else { throw failure("read") }
    let verb: String = text.hasPrefix("SELECT") ? "read" : "write"
    return StoreStatement(statement, verb: verb, of: self)
  }

  /// Executes `body` in a transaction that writes; another process waits until its end.
  func transaction<Result>(_ body: () throws(FlowError) -> Result) throws(FlowError) -> Result {
    try begin()
    do throws(FlowError) {
      let result = try body()
      try commit()
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  func begin() throws(FlowError) {
    // One that another process or a copy of the folder has put there would get what belongs to this one.
    if hasMoved {
      throw StoreProblem.removed.error("the store '\(folder)' was removed while it was in use")
    }
    if beginStatement == nil { beginStatement = try prepare("BEGIN IMMEDIATE") }
    try beginStatement?.run()
  }

  func commit() throws(FlowError) {
    if commitStatement == nil { commitStatement = try prepare("COMMIT") }
    Failpoint.pass()
    try commitStatement?.run()
    Failpoint.pass()
  }

  /// Ends a transaction without its changes; some failures have ended it already.
  func rollBack() {
    if csqlite_is_in_transaction(raw) { try? execute("ROLLBACK") }
  }

  private var beginStatement: StoreStatement?
  private var commitStatement: StoreStatement?

  /// The error of the last call.
  func failure(_ verb: String) -> FlowError {
    let code = csqlite_code(raw)
    let number = csqlite_system_code(raw)
    let text = ByteString(String(cString: csqlite_message(raw)))
    switch code & 0xFF {
    case SQLITE_FULL:
      return StoreProblem.full.error(
        "can't write the store '\(folder)': no space left", code: ENOSPC)
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
      if code == Int32(CSQLITE_READONLY_MOVED) {
        return StoreProblem.removed.error("the store '\(folder)' was removed while it was in use")
      }
      return StoreProblem.notAllowed.error(
        "can't write the store '\(folder)': it is read-only\(Sandbox.hint(EACCES, isWritten: true))"
      )
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      return StoreProblem.damaged.error(
        "the store '\(folder)' is damaged: \(text) (--verify shows what)")
    case SQLITE_BUSY, SQLITE_LOCKED:
      return StoreProblem.busy.error(
        "can't \(verb) the store '\(folder)': another process has been writing it for too long")
    case SQLITE_IOERR, SQLITE_CANTOPEN:
      if number != 0 { return StoreProblem.system(verb, folder, number) }
      return StoreProblem.other.error("can't \(verb) the store '\(folder)': \(text)")
    default:
      return StoreProblem.other.error("can't \(verb) the store '\(folder)': \(text)")
    }
  }
}

/// Writes and reads the files of a store, which hold large values.
enum StoreFiles {
  /// Makes a file for this user only, and flushes its content to the disk. Blocks.
  static func write(
    _ bytes: [UInt8], to path: ByteString, of folder: ByteString
  ) throws(FlowError) {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
    Failpoint.pass()
    let descriptor = path.withCString { open($0, flags, 0o600) } ?? -1
    guard descriptor >= 0 else { throw StoreProblem.system("write", folder, errno) }
    var problem = writeAll(bytes, to: descriptor)
    Failpoint.pass()
    if problem == 0, fsync(descriptor) != 0 { problem = errno }
    // A full disk may report its error only here.
    if close(descriptor) != 0, problem == 0, errno != EINTR { problem = errno }
    Failpoint.pass()
    guard problem != 0 else { return }
    _ = path.withCString { unlink($0) }
    throw StoreProblem.system("write", folder, problem)
  }

  /// Flushes the names in a folder to the disk. Blocks.
  static func synchronize(_ path: ByteString, of folder: ByteString) throws(FlowError) {
    let descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } ?? -1
    guard descriptor >= 0 else { throw StoreProblem.system("write", folder, errno) }
    defer { close(descriptor) }
    if fsync(descriptor) != 0 { throw StoreProblem.system("write", folder, errno) }
    Failpoint.pass()
  }

  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        let count = FlowSystem.write(descriptor, part.baseAddress, part.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if count == 0 || errno != EINTR {
          return count == 0 ? EIO : errno
        }
      }
      return 0
    }
  }
}
