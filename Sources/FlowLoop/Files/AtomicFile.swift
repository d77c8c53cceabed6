internal import Glibc

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
