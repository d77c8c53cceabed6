internal import Glibc

/// A file that replaces another one in one step: until `commit`, the other one is unchanged.
///
/// The content goes into a temporary file in the same folder, which then gets the name. An existing
/// file keeps its permissions, and a symbolic link stays a link. Without a `commit` the temporary
/// file is removed.
final class AtomicFile {
  /// The temporary file, open for writing.
  let descriptor: Int32
  private let temporary: ByteString
  private let target: ByteString
  private let failure: (Int32) -> SystemError
  private var isOpen = true

  /// The name of each temporary file begins and ends like this.
  static let namePrefix: [UInt8] = Array(".flowlua-".utf8)
  static let nameSuffix: [UInt8] = Array(".tmp".utf8)

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
    let (target, present) = followsLink ? try Self.target(of: path, failure) : (path, nil)
    let (temporary, descriptor) = try Self.makeTemporary(
      beside: target, for: path, mode: (mode ?? present ?? 0o666) & 0o777, failure)
    // In a sandbox the permissions of no file can be changed: the umask has removed what it does.
    if let mode = mode ?? present, fchmod(descriptor, mode) != 0,
      case let number = errno, number != EPERM
    {
      close(descriptor)
      Self.remove(temporary)
      throw failure(number)
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
    if problem == 0 {
      let renamed = temporary.withCString { from in target.withCString { rename(from, $0) } }
      if renamed != .some(.some(0)) { problem = errno }
    }
    guard problem == 0 else {
      Self.remove(temporary)
      if cancellation.isRequested { throw .cancelled }
      throw failure(problem)
    }
    TemporaryPaths.shared.forget(temporary)
    Self.syncFolder(of: target)
  }

  private static func remove(_ temporary: ByteString) {
    _ = temporary.withCString { unlink($0) }
    TemporaryPaths.shared.forget(temporary)
  }

  /// The target of a path after following symbolic links, and its permissions if it exists.
  private static func target(
    of path: ByteString, _ failure: (Int32) -> SystemError
  ) throws(SystemError) -> (ByteString, mode_t?) {
    var status = stat()
    guard let found = path.withCString({ stat($0, &status) }) else { throw .nul(in: path) }
    guard found == 0 else {
      guard errno == ENOENT else { throw failure(errno) }
      // Also for a link without a target: the link itself is replaced then.
      return (path, nil)
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
      return ByteString(Array(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved))))
    }
    guard case .some(.some(let resolved)) = real else { throw failure(errno) }
    return (resolved, status.st_mode & 0o7777)
  }

  private static func makeTemporary(
    beside target: ByteString, for path: ByteString, mode: mode_t,
    _ failure: (Int32) -> SystemError
  ) throws(SystemError) -> (ByteString, Int32) {
    let folder = folder(of: target)
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
        return (name, descriptor)
      }
      if errno != EEXIST { throw failure(errno) }
    }
    throw failure(EEXIST)
  }

  /// The folder of a path with its last slash; empty for the working directory.
  private static func folder(of path: ByteString) -> ByteString {
    ByteString(Array(path.bytes.dropLast(path.lastPathComponent.count)))
  }

  /// Flushes the new name to the disk too. Not every file system supports that; the content is safe
  /// anyway.
  private static func syncFolder(of path: ByteString) {
    let folder = folder(of: path)
    let opened = DirectoryEntries.open(folder.isEmpty ? "." : folder, follows: true)
    guard let descriptor = opened, descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
