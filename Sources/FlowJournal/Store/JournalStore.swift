package import FlowEngine
internal import Glibc

/// A folder that keeps runs: what their ops did, over all processes that execute them.
///
/// The folder has the database `store.sqlite`, the file `key`, and in `values` the values of more than
/// 64 KiB, a folder for each run. A store is confined to the thread that makes it, and its calls block for as
/// long as the disk needs.
package final class JournalStore {
  /// The path of the folder.
  package let folder: ByteString
  /// Whether nothing can be written.
  package let isReadOnly: Bool
  let database: StoreDatabase
  let key: [UInt8]
  let table: RecordTable
  let files: FileTable
  let codes: CodeTable
  let digests: DigestMaker

  /// How long a call waits for another process that writes, in milliseconds.
  private static let patience: Int32 = 5000

  /// Opens the store of a folder. One that writes makes what doesn't exist: the folder, for this user only,
  /// the database and the key.
  ///
  /// - Parameters:
  ///   - folder: The path.
  ///   - isReadOnly: Whether only to read; the store must exist then.
  /// - Throws: A `FlowError` with a `storeProblem`: there is no such store or no access to it, it is on a
  ///   network file system, damaged, or of a later version.
  package convenience init(folder: ByteString, isReadOnly: Bool) throws(FlowError) {
    try self.init(folder: folder, isReadOnly: isReadOnly, newKey: nil)
  }

  /// Opens a store as the initializer above; a new one that writes gets the key `newKey`, unless that is nil.
  init(folder: ByteString, isReadOnly: Bool, newKey: [UInt8]?) throws(FlowError) {
    self.folder = folder
    self.isReadOnly = isReadOnly
    if isReadOnly {
      try Self.checkExists(folder)
    } else {
      try StoreKey.makeFolder(folder)
      try Self.checkAccess(folder)
    }
    try StoreKey.checkFileSystem(of: folder)
    // Without its key no record would be what was written.
    let isNew = isReadOnly ? false : try Self.fileSize("store.sqlite", in: folder) == 0
    key = try StoreKey.open(in: folder, makes: isNew, given: newKey)
    digests = try DigestMaker(key: key)
    if isNew { try StoreKey.makeDatabase(in: folder) }
    database = try isReadOnly ? Self.openToRead(folder) : Self.openToWrite(folder, Self.patience)
    table = try RecordTable(database, digests)
    files = FileTable(database, digests)
    codes = CodeTable(database, digests)
  }

  /// Opens the database for writing.
  static func openToWrite(
    _ folder: ByteString, _ patience: Int32
  ) throws(FlowError) -> StoreDatabase {
    let database = try StoreDatabase(folder: folder, mode: .readWrite, patience: patience)
    try StoreSchema.prepare(database)
    return database
  }

  private static func openToRead(_ folder: ByteString) throws(FlowError) -> StoreDatabase {
    do throws(FlowError) {
      return try openChecked(folder, .readOnly)
    } catch {
      let mayWrite = folder.withCString { access($0, W_OK) } == .some(0)
      if mayWrite, error.storeProblem == .notAllowed {
        // A process was killed while it made the store: what it hadn't finished has to be taken back first.
        try StoreDatabase(folder: folder, mode: .readWrite, patience: patience).recover()
        return try openChecked(folder, .readOnly)
      }
      // Even reading needs a file for locks, which can't be made there. Nobody else can write either,
      // so none is needed, unless a part of the content is still in the log of changes.
      guard !mayWrite, try fileSize("store.sqlite-wal", in: folder) == 0 else { throw error }
      return try openChecked(folder, .immutable)
    }
  }

  private static func openChecked(
    _ folder: ByteString, _ mode: StoreDatabase.Mode
  ) throws(FlowError) -> StoreDatabase {
    let database = try StoreDatabase(folder: folder, mode: mode, patience: patience)
    try StoreSchema.check(database)
    return database
  }

  /// Throws a `FlowError` unless a folder has a store that this user may read.
  package static func checkExists(_ folder: ByteString) throws(FlowError) {
    guard let found = (folder + "/store.sqlite").withCString({ access($0, R_OK) }) else {
      throw StoreProblem.other.error("the path '\(folder.escapingNUL)' has a NUL byte in it")
    }
    if found == 0 { return }
    if errno == ENOENT || errno == ENOTDIR {
      throw StoreProblem.missing.error("there is no store '\(folder)'", code: ENOENT)
    }
    throw StoreProblem.system("read", folder, errno)
  }

  /// SQLite would only report that it can't open a file.
  private static func checkAccess(_ folder: ByteString) throws(FlowError) {
    let database = folder + "/store.sqlite"
    let allowed = folder.withCString { access($0, R_OK | W_OK | X_OK) }
    if allowed != .some(0) { throw StoreProblem.system("write", folder, errno) }
    let usable = database.withCString { access($0, R_OK | W_OK) }
    if usable != .some(0), errno != ENOENT { throw StoreProblem.system("write", folder, errno) }
  }

  /// The size of a file in the folder; 0 for one that doesn't exist.
  static func fileSize(_ name: ByteString, in folder: ByteString) throws(FlowError) -> Int64 {
    do throws(SystemError) {
      return try FileStatus.read(folder + "/" + name, follows: true)?.size ?? 0
    } catch {
      throw StoreProblem.system("read", folder, error.code ?? EIO)
    }
  }

  /// The digest of bytes with the key of this store.
  package func digest(_ bytes: UnsafeRawBufferPointer) throws(FlowError) -> Digest {
    try digests.digest(of: bytes)
  }

  /// The digest of bytes with the key of this store.
  package func digest(_ bytes: ByteString) throws(FlowError) -> Digest {
    try digests.digest(of: bytes.bytes)
  }

  /// The encoded value of a write; nil for a key that was removed. A large one is read from its file.
  ///
  /// - Throws: A `FlowError` when the file is missing or isn't what was written.
  package func load(_ write: KeptWrite) throws(FlowError) -> ByteString? {
    switch write.content {
    case .removed: nil
    case .bytes(let bytes): bytes
    case .file(let file): try ValueFiles.read(file, in: folder, with: digests)
    }
  }
}
