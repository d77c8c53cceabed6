internal import FlowEngine
internal import FlowSystem

/// The files of large values: `values/RUN/NAME`, one for each value.
///
/// A file that a crash has left without a record goes with the folder of its run.
enum ValueFiles {
  /// The largest value that is kept in the database itself, in bytes.
  static let limit = 64 << 10

  static let folderName = "values" as ByteString

  /// Moves the large values of a record into files, whose contents are flushed to the disk; the folder of the
  /// run has to be flushed then. Blocks.
  static func store(
    _ record: inout OpRecord, of run: ByteString, in folder: ByteString, with digests: DigestMaker
  ) throws(FlowError) {
    try makeFolder(of: run, in: folder)
    for index in record.writes.indices {
      guard case .bytes(let value) = record.writes[index].content, value.count > limit else {
        continue
      }
      let name = run + "/" + ByteString(String(UInt64.random(in: 0 ... .max), radix: 36))
      let digest = try digests.digest(of: value.bytes)
      try StoreFiles.write(value.bytes, to: folder + "/values/" + name, of: folder)
      record.writes[index].content = .file(
        KeptFile(name: name, size: Int64(value.count), digest: digest))
    }
  }

  /// Flushes the names of a run's files to the disk.
  static func synchronize(_ run: ByteString, in folder: ByteString) throws(FlowError) {
    try StoreFiles.synchronize(folder + "/values/" + run, of: folder)
  }

  /// Whether a name is one that runs have, so that its folder is no other one.
  static func isRun(_ name: ByteString) -> Bool {
    (1...64).contains(name.count)
      && name.bytes.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
          || $0.isDigit
      }
  }

  private static func check(_ run: ByteString, in folder: ByteString) throws(FlowError) {
    if isRun(run) { return }
    throw StoreProblem.damaged.error("the store '\(folder)' names no run of it: '\(run)'")
  }

  private static func makeFolder(of run: ByteString, in folder: ByteString) throws(FlowError) {
    try check(run, in: folder)
    let values = folder + "/" + folderName
    for path in [values, values + "/" + run] {
      let made = path.withCString { mkdir($0, 0o700) }
      if made == .some(0) {
        Failpoint.pass()
        try StoreFiles.synchronize(path == values ? folder : values, of: folder)
      } else if errno != EEXIST {
        throw StoreProblem.system("write", folder, errno)
      }
    }
  }

  static func read(
    _ file: KeptFile, in folder: ByteString, with digests: DigestMaker
  ) throws(FlowError) -> ByteString {
    guard isName(file.name) else {
      throw StoreProblem.damaged.error("the store '\(folder)' names no file of it: '\(file.name)'")
    }
    let path = folder + "/values/" + file.name
    let content: ByteString
    do throws(SystemError) {
      content = try Files.read(path, Cancellation())
    } catch {
      if error.code == ENOENT {
        throw StoreProblem.missing.error(
          "the store '\(folder)' lacks the file 'values/\(file.name)'", code: ENOENT)
      }
      throw StoreProblem.system("read", folder, error.code ?? EIO)
    }
    let digest = try digests.digest(of: content.bytes)
    if digest == file.digest { return content }
    throw StoreProblem.damaged.error("'\(path)' isn't what was written")
  }

  /// Whether a name from the database is one that this type makes, so that it leads to no other folder.
  private static func isName(_ name: ByteString) -> Bool {
    name.split(at: "/").count == 2
      && name.bytes.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
          || $0.isDigit || $0 == UInt8(ascii: "/")
      }
  }

  /// The folders of runs, and what is in them.
  static func list(
    in folder: ByteString, isRecursive: Bool
  ) throws(FlowError) -> [DirectoryListing.Entry] {
    var listing = DirectoryListing(folder + "/" + folderName)
    listing.isRecursive = isRecursive
    do throws(SystemError) {
      return try listing.read(Cancellation())
    } catch {
      if error.code == ENOENT { return [] }
      throw StoreProblem.system("read", folder, error.code ?? EIO)
    }
  }

  /// Removes all files of a run.
  static func remove(_ run: ByteString, in folder: ByteString) throws(FlowError) {
    try check(run, in: folder)
    Failpoint.pass()
    do throws(SystemError) {
      try FileRemoval.remove(folder + "/values/" + run, recursive: true, Cancellation())
    } catch {
      if error.code != ENOENT { throw StoreProblem.system("write", folder, error.code ?? EIO) }
    }
  }
}
