internal import FlowEngine
internal import FlowSystem

/// A regular file, or a part of one, that is sent as a body, read while it is sent.
final class HTTPUpload {
  private let descriptor: Int32
  /// How many bytes are sent, as the file was when it was opened; -1 for a file whose bytes the system doesn't
  /// count, such as one of /proc.
  let size: Int64
  private let first: Int64
  private var position: Int64 = 0

  /// Opens the file at a path, to send `size` bytes from the byte `first` on; nil for all that follow.
  init(_ path: ByteString, from first: Int64 = 0, size: Int64? = nil) throws(FlowError) {
    let opened = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard let opened, opened >= 0 else { throw Self.failure(path, errno) }
    var status = stat()
    guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(opened)
      // A pipe would block the loop.
      throw FlowError(.error, "can't read '\(path)': not a regular file")
    }
    var byte: UInt8 = 0
    let isUncounted = status.st_size == 0 && pread(opened, &byte, 1, 0) == 1
    let isPart = first > 0 || size != nil
    let left = Int64(status.st_size) - first
    guard !isPart || !isUncounted && left >= size ?? 0 else {
      close(opened)
      throw FlowError(
        .error,
        isUncounted
          ? "can't send a part of '\(path)': its size isn't known"
          : "can't send a part of '\(path)': it has \(status.st_size) bytes")
    }
    descriptor = opened
    self.first = first
    self.size = isUncounted ? -1 : size ?? left
  }

  /// The content of a file whose bytes the system doesn't count, as far as it can be read; nil for any other one.
  static func uncounted(_ path: ByteString) -> ByteString? {
    guard let file = try? HTTPUpload(path), file.size < 0 else { return nil }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 14)
    while let count = chunk.withUnsafeMutableBytes({ buffer in
      buffer.baseAddress.flatMap { file.read($0, buffer.count) }
    }), count > 0 {
      bytes += chunk[..<count]
    }
    return ByteString(bytes)
  }

  deinit { close(descriptor) }

  /// Reads the next bytes; 0 at the end, nil for an error.
  func read(_ buffer: UnsafeMutableRawPointer, _ room: Int) -> Int? {
    let room = size < 0 ? room : Int(clamping: min(Int64(room), max(0, size - position)))
    while true {
      let count = pread(descriptor, buffer, room, off_t(first.later(by: position)))
      if count >= 0 {
        position += Int64(count)
        return count
      }
      if errno != EINTR { return nil }
    }
  }

  /// Continues at a position.
  func seek(_ position: Int64) { self.position = position }

  /// The error of a path that isn't a readable regular file; nil for one.
  static func problem(_ path: ByteString) -> FlowError? {
    do throws(FlowError) {
      _ = try HTTPUpload(path)
      return nil
    } catch {
      return error
    }
  }

  private static func failure(_ path: ByteString, _ number: Int32) -> FlowError {
    let reason = strerror(number).map { ByteString(cString: $0) } ?? "error \(number)"
    return FlowError(.error, "can't read '\(path)': \(reason)", code: Int64(number))
  }
}

/// The body of a response, as far as it is kept.
struct HTTPBodyBuffer {
  /// The use of a body.
  enum Kind {
    case memory, file, stream
    /// The start is kept for an error.
    case excerpt
    case ignored
  }

  /// The most bytes of a body that nobody wants; a connection isn't worth more.
  static let patience: Int64 = 1 << 20

  var kind = Kind.memory
  var bytes: [UInt8] = []
  /// Decodes what comes.
  var decoder: HTTPDecoder?
  /// Counts `bytes`, of a loop with a meter.
  var held: HeldBytes?
  /// The number of bytes that have come.
  var size: Int64 = 0
  /// The range that a continued file gets.
  var range: ContentRange?
  /// The number of bytes of the request's body that were sent.
  var sent: Int64 = 0
  /// Whether the rest of an unwanted body wasn't waited for.
  var isCut = false

  /// Adds bytes that are kept in memory; returns whether there is room for them.
  mutating func append(_ more: UnsafeRawBufferPointer, _ meter: (any MemoryMeter)?) -> Bool {
    bytes.append(contentsOf: more)
    guard let meter else { return true }
    let held = held ?? HeldBytes(meter)
    self.held = held
    return held.set(bytes.capacity) == nil
  }

  /// Forgets the bytes.
  mutating func drop() {
    bytes = []
    held = nil
    decoder = nil
  }
}
