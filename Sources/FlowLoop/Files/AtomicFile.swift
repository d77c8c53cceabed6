internal import FlowSystem

/// A file that replaces another one in one step: until `commit`, the other one is unchanged.
///
/// The content goes into a temporary file in the same folder, which then takes its `FileTarget`. Without a `commit` the
/// temporary file is removed.
final class AtomicFile {
  /// The temporary file, open for writing.
  let descriptor: Int32
  private let temporary: ByteString
  private let target: FileTarget
  private let failure: (Int32) -> SystemError
  private var isOpen = true

  /// The name of each temporary file begins and ends like this.
  static let namePrefix: [UInt8] = ".flowlua-".bytes
  static let nameSuffix: [UInt8] = ".tmp".bytes

  /// Makes the temporary file.
  ///
  /// - Parameters:
  ///   - path: The path of the file to replace or make.
  ///   - mode: Its permissions; by default those of the existing file, or the usual ones.
  ///   - followsLink: Whether a link stays one. One that isn't followed is replaced, as a file of any other kind.
  ///   - failure: Makes the error of a call that failed, from its `errno`.
  /// - Throws: A `SystemError` when the file can't be replaced.
  init(
    replacing path: ByteString, mode: mode_t? = nil, followsLink: Bool = true,
    failure: @escaping (Int32) -> SystemError
  ) throws(SystemError) {
    let target =
      followsLink ? try FileTarget(path, failure: failure) : FileTarget(replacingAnything: path)
    let (temporary, descriptor, isBeside) = try Self.makeTemporary(
      beside: target, for: path, mode: (mode ?? target.mode ?? 0o666) & 0o777, failure)
    let problem = isBeside ? target.prepare(descriptor, mode: mode) : 0
    if problem != 0 {
      close(descriptor)
      Self.remove(temporary)
      throw failure(problem)
    }
    self.descriptor = descriptor
    self.temporary = temporary
    self.target = target
    self.failure = failure
  }

  deinit {
    guard isOpen else { return }
    close(descriptor)
    Self.remove(temporary)
  }

  /// Flushes the content to the disk, and replaces the file. Only the first call does something.
  func commit(_ cancellation: Cancellation) throws(SystemError) {
    guard isOpen else { return }
    isOpen = false
    var problem: Int32 = fsync(descriptor) == 0 ? 0 : errno
    // A full disk, or a network, may report its error only here.
    if close(descriptor) != 0, problem == 0, errno != EINTR { problem = errno }
    if problem == 0, cancellation.isRequested { problem = ECANCELED }
    if problem == 0 { problem = target.replace(by: temporary) }
    guard problem == 0 else {
      Self.remove(temporary)
      if cancellation.isRequested { throw .cancelled }
      throw failure(problem)
    }
    TemporaryPaths.shared.forget(temporary)
  }

  private static func remove(_ temporary: ByteString) {
    _ = temporary.withCString { unlink($0) }
    TemporaryPaths.shared.forget(temporary)
  }

  /// Makes the temporary file in the folder of the target, or elsewhere if that folder can't be written but the target can.
  private static func makeTemporary(
    beside target: FileTarget, for path: ByteString, mode: mode_t,
    _ failure: (Int32) -> SystemError
  ) throws(SystemError) -> (ByteString, Int32, isBeside: Bool) {
    var folder = FileTarget.folder(of: target.path)
    var mode = mode
    var isBeside = true
    // The name isn't derived from the file's own, which may have the maximum length already.
    for _ in 0..<100 {
      let number = Array(String(UInt64.random(in: 0 ... .max), radix: 36).utf8)
      let name = ByteString(folder.bytes + namePrefix + number + nameSuffix)
      // The system applies the umask, as for any new file.
      let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
      guard let descriptor = name.withCString({ open($0, flags, mode) }) else {
        throw .nul(in: path)
      }
      if descriptor >= 0 {
        TemporaryPaths.shared.insert(name, isFolder: false)
        return (name, descriptor, isBeside)
      }
      if isBeside, target.exists, [EACCES, EPERM, EROFS].contains(errno) {
        folder = Folders.temporary + "/"
        mode = 0o600
        isBeside = false
      } else if errno != EEXIST {
        throw failure(errno)
      }
    }
    throw failure(EEXIST)
  }
}

/// The place where a file is written: a new file that is complete takes the place of the one that is there, in one step.
///
/// The file's owner, permissions and extended attributes stay as far as the process may give them to the new
/// file, and a symbolic link stays a link. A file that nothing can replace, because it is a mount of its own or its folder
/// can't be written, is overwritten.
package struct FileTarget {
  /// The path after following symbolic links, the last of which may lead to a file that isn't there yet.
  package let path: ByteString
  /// The status of the file that is there.
  private let present: stat?

  /// Its permissions; nil when there is no file.
  package var mode: UInt32? { present.map { $0.st_mode & 0o7777 } }
  /// Whether there is a file.
  package var exists: Bool { present != nil }

  /// Looks at a place.
  ///
  /// - Parameters:
  ///   - path: The path of the file to replace or make.
  ///   - failure: Makes the error of a call that failed, from its `errno`.
  /// - Throws: A `SystemError` when the file can't be written.
  package init(_ path: ByteString, failure: (Int32) -> SystemError) throws(SystemError) {
    var path = path
    var status = stat()
    // As many links as the system follows.
    for _ in 0...40 {
      guard let found = path.withCString({ stat($0, &status) }) else { throw .nul(in: path) }
      if found == 0 { break }
      guard errno == ENOENT else { throw failure(errno) }
      guard let next = Self.next(path) else {
        self.path = path
        present = nil
        return
      }
      path = next
    }
    // Renaming would replace a device with a file.
    if status.st_mode & S_IFMT == S_IFDIR { throw failure(EISDIR) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw SystemError("can't write '\(path)': not a regular file", code: EINVAL)
    }
    // Renaming only needs the folder's permissions; a write-protected file must stay.
    if let allowed = path.withCString({ access($0, W_OK) }), allowed != 0 { throw failure(errno) }
    let real = path.withCString { name -> ByteString? in
      guard let resolved = realpath(name, nil) else { return nil }
      defer { free(resolved) }
      return ByteString(cString: resolved)
    }
    guard case .some(.some(let resolved)) = real else { throw failure(errno) }
    self.path = resolved
    present = status
  }

  /// A place that isn't looked at: what is there is replaced, whatever it is.
  init(replacingAnything path: ByteString) {
    self.path = path
    present = nil
  }

  /// Where a link leads; nil for anything else.
  private static func next(_ path: ByteString) -> ByteString? {
    let read = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer -> [UInt8]? in
      let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
      guard let start, let count = path.withCString({ readlink($0, start, 4096) }),
        (1..<4096).contains(count)
      else { return nil }
      return Array(buffer[..<count])
    }
    guard let read else { return nil }
    return read.first == UInt8(ascii: "/")
      ? ByteString(read) : ByteString(Array(folder(of: path).bytes) + read)
  }

  /// The folder of a path with its last slash; empty for the working directory.
  package static func folder(of path: ByteString) -> ByteString {
    ByteString(path.bytes.dropLast(path.fileName.count))
  }

  // MARK: Replacing

  /// Gives a new file what the present one has; returns the `errno` of the permissions, 0 if they are set. In a sandbox
  /// nothing of this can be changed.
  package func prepare(_ descriptor: Int32, mode given: UInt32? = nil) -> Int32 {
    var status = stat()
    if let present, fstat(descriptor, &status) == 0 {
      // Each for itself: only the superuser may change the owner, but others the group, to one of theirs.
      if status.st_uid != present.st_uid { fchown(descriptor, present.st_uid, .max) }
      if status.st_gid != present.st_gid { fchown(descriptor, .max, present.st_gid) }
    }
    if exists {
      // A user may set attributes only of a file that can be written.
      fchmod(descriptor, 0o600)
      // Lists for access are attributes, too, and part of the permissions.
      _ = path.withCString { flowsystem_copy_attributes($0, descriptor, given == nil) }
    }
    if let mode = given ?? mode, fchmod(descriptor, mode) != 0, errno != EPERM { return errno }
    return 0
  }

  /// Gives a complete file this place; returns an `errno`, or 0. `descriptor` is the file's if it is open for
  /// reading, as one that can't be renamed needs.
  package func replace(by temporary: ByteString) -> Int32 {
    let renamed = temporary.withCString { from in path.withCString { rename(from, $0) } }
    if renamed == .some(.some(0)) {
      syncFolder()
      return 0
    }
    let number = errno
    // A mount of its own, or one whose folder is elsewhere; a file of another user in a folder as /tmp.
    guard exists, [EBUSY, EXDEV, EACCES, EROFS, EPERM].contains(number) else { return number }
    return overwrite(by: temporary)
  }

  /// Writes the content of a file over the present one, and removes that file.
  private func overwrite(by temporary: ByteString) -> Int32 {
    let source: InputFile
    do { source = try InputFile(temporary, verb: "read") } catch { return error.code ?? EIO }
    let target = path.withCString { open($0, O_WRONLY | O_TRUNC | O_CLOEXEC) } ?? -1
    guard target >= 0 else { return errno }
    var problem = source.copy(to: target)
    if fsync(target) != 0, problem == 0 { problem = errno }
    if close(target) != 0, problem == 0, errno != EINTR { problem = errno }
    if problem == 0 { _ = temporary.withCString { unlink($0) } }
    return problem
  }

  /// Flushes the new name to the disk too. Not every file system supports that; the content is safe
  /// anyway.
  private func syncFolder() {
    let folder = Self.folder(of: path)
    let opened = DirectoryEntries.open(folder.isEmpty ? "." : folder, follows: true)
    guard let descriptor = opened, descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
