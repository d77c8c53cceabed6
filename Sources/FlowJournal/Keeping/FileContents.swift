internal import FlowEngine
internal import FlowLoop
internal import FlowSystem

/// The content at the path of a file.
enum FileContent: Sendable {
  /// The digest of the content.
  case digest(Digest)
  /// There is no file.
  case missing
  /// It can't be read.
  case unreadable(ByteString)
}

/// The contents of files. A file whose stamp equals an earlier reading's, by any process, isn't read again.
///
/// Confined to the loop's thread; files are read on helper threads.
final class FileContents {
  /// How long ago a file must have changed for its stamp to say whether it changes again, in nanoseconds: the times of
  /// file systems are rough.
  private static let settlingTime: Int64 = 2_000_000_000

  private let store: JournalStore
  private let kept: KeptRun?
  private var known: [FileStamp: Digest] = [:]

  init(_ store: JournalStore, _ kept: KeptRun?) {
    self.store = store
    self.kept = kept
  }

  /// The content at a path; nil when the file has to be read first.
  func content(at path: ByteString) throws -> FileContent? {
    let stamp: FileStamp
    do throws(SystemError) {
      guard let found = try FileStamp.read(path) else { return .missing }
      stamp = found
    } catch {
      return .unreadable(error.message)
    }
    if let digest = known[stamp] { return .digest(digest) }
    guard let digest = try store.files.content(of: stamp) else { return nil }
    known[stamp] = digest
    return .digest(digest)
  }

  /// The reading of a helper thread: the hexadecimal digest, and the stamp if it says whether the file changes
  /// again.
  struct Read: Sendable {
    let result: Result<ByteString, SystemError>
    let stamp: FileStamp?

    /// Reads a file at a time, in nanoseconds since 1970. Blocks.
    static func read(
      _ path: ByteString, _ cancellation: Cancellation,
      at time: Int64 = SystemClock.read(CLOCK_REALTIME)
    ) -> Read {
      do throws(SystemError) {
        let (digest, stamp) = try FileHash.sha256.digestAndStamp(ofFile: path, cancellation)
        let isSettled = stamp.map { max($0.modified, $0.changed) < time &- settlingTime } ?? false
        return Read(result: .success(digest), stamp: isSettled ? stamp : nil)
      } catch {
        return Read(result: .failure(error), stamp: nil)
      }
    }
  }

  /// The content of a file that was read, which is kept in the store if its stamp is known.
  func content(of read: Read) throws -> FileContent {
    switch read.result {
    case .success(let text):
      let digest = try store.digest(text)
      if let stamp = read.stamp {
        known[stamp] = digest
        kept?.write(KnownFile(stamp: stamp, content: digest))
      }
      return .digest(digest)
    case .failure(let error):
      return error.code == ENOENT || error.code == ENOTDIR
        ? .missing : .unreadable(error.message)
    }
  }
}

/// The reading of files whose content a decision about an op depends on, or that an op has made.
final class FileReading: KeptReading {
  private let files: FileContents
  private let loop: FlowEventLoop
  private let paths: [ByteString]
  /// The contents of the files, with what was known before.
  private var contents: [ByteString: FileContent]
  private let cancellation = Cancellation()

  /// The reading of files for a work that has read those of `earlier` before.
  init(
    _ paths: Set<ByteString>, _ files: FileContents, on loop: FlowEventLoop,
    after earlier: FileReading? = nil
  ) {
    self.paths = paths.sorted()
    self.files = files
    self.loop = loop
    contents = earlier?.contents ?? [:]
  }

  /// The content that was read at a path; nil for a file that wasn't.
  func content(at path: ByteString) -> FileContent? { contents[path] }

  func begin(then: @escaping () -> Void) {
    let (paths, cancellation) = (paths, cancellation)
    loop.offload {
      paths.map { FileContents.Read.read($0, cancellation) }
    } then: { [self] reads in
      for (path, read) in zip(paths, reads) {
        do { contents[path] = try files.content(of: read) } catch {
          contents[path] = .unreadable(FlowError.from(error).message)
        }
      }
      then()
    }
  }

  func cancel() { cancellation.request() }
}

extension KeptInput {
  /// The key of the value, or of the value that names the files.
  var key: ByteString {
    name.bytes.first == 0 ? ByteString(name.bytes.dropFirst()) : name
  }
}

/// Files have to be read before it is known whether an op has to be executed.
struct UnreadFiles: Error {
  var paths: Set<ByteString>
}
