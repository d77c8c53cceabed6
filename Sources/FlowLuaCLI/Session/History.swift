internal import FlowEngine
internal import FlowSystem

/// The lines of all sessions, in a file. One chunk is one line, in which `\n` and `\\` mean a line
/// break and a backslash. Sessions append each chunk to it at once, so that none loses another's.
final class History {
  /// The number of chunks that are kept; the file may have twice as many for a while.
  private static let limit = 2000
  /// Longer chunks aren't kept, and of a longer file only the last bytes.
  private static let longestChunk = 100_000
  private static let longestFile = 8_000_000

  /// nil if there is no folder for it.
  private let path: String?
  private var last: [UInt8] = []
  /// One message is enough.
  private var hasComplained = false

  init() {
    if let state = Terminal.variable("XDG_STATE_HOME"), state.hasPrefix("/") {
      path = state + "/flowlua/history"
    } else if let home = Terminal.variable("HOME"), home.hasPrefix("/") {
      path = home + "/.local/state/flowlua/history"
    } else {
      path = nil
    }
  }

  /// Passes on the chunks of earlier sessions, the oldest first; returns a message for the user, if
  /// there is one.
  func load(_ add: (UnsafePointer<CChar>) -> Void) -> ByteString? {
    guard let path, access(path, F_OK) == 0 else { return nil }
    let file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return complaint(errno) }
    defer { close(file) }
    flock(file, LOCK_EX)
    guard let content = read(file) else { return complaint(errno == 0 ? EINVAL : errno) }
    var isDamaged = false
    var chunks: [[UInt8]] = []
    for line in content.split(separator: UInt8(ascii: "\n")) {
      if line.contains(where: { $0 < 32 && $0 != UInt8(ascii: "\t") || $0 == 127 })
        || line.count > Self.longestChunk * 2
      {
        isDamaged = true
      } else {
        chunks.append(Self.decoded(line))
      }
    }
    if chunks.count > Self.limit * 2 || content.count > Self.longestFile / 2 {
      chunks = Array(chunks.suffix(Self.limit))
      replace(path, chunks)
    }
    for chunk in chunks.suffix(Self.limit) {
      (chunk.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
        if let base = $0.baseAddress { add(base) }
      }
    }
    last = chunks.last ?? []
    guard isDamaged else { return nil }
    hasComplained = true
    return "some of the history in '\(path)' can't be read and is left out"
  }

  /// The text of a chunk to store; nil for an empty one, or if it equals the last one.
  func entry(_ chunk: [UInt8]) -> [UInt8]? {
    var entry = chunk
    while let byte = entry.last, byte == 32 || byte == 9 || byte == 10 || byte == 13 {
      entry.removeLast()
    }
    guard !entry.isEmpty, entry != last, entry.count <= Self.longestChunk,
      !entry.contains(where: { $0 < 32 && $0 != 9 && $0 != 10 || $0 == 127 })
    else { return nil }
    last = entry
    return entry
  }

  /// Appends a chunk to the file; returns a message for the user, if there is one.
  func append(_ entry: [UInt8]) -> ByteString? {
    guard let path else { return nil }
    Self.makeFolders(of: path)
    // Another session may replace it by a shorter file at any time.
    for _ in 0..<5 {
      let file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
      guard file >= 0 else { return complaint(errno) }
      defer { close(file) }
      flock(file, LOCK_EX)
      var here = stat()
      var there = stat()
      guard fstat(file, &here) == 0 else { return complaint(errno) }
      guard here.st_mode & S_IFMT == S_IFREG else { return complaint(EINVAL) }
      if stat(path, &there) != 0 || here.st_ino != there.st_ino || here.st_dev != there.st_dev {
        continue
      }
      var end: UInt8 = UInt8(ascii: "\n")
      if here.st_size > 0 { pread(file, &end, 1, here.st_size - 1) }
      // A truncated line stays a separate line.
      let line =
        (end == UInt8(ascii: "\n") ? [] : [UInt8(ascii: "\n")]) + Self.encoded(entry)
      return write(file, line, line.count) == line.count ? nil : complaint(errno)
    }
    return nil
  }

  private func complaint(_ number: Int32) -> ByteString? {
    guard let path, !hasComplained else { return nil }
    hasComplained = true
    return "the history in '\(path)' can't be kept: \(String(cString: strerror(number)))"
  }

  /// The end of a regular file, from the start of a line.
  private func read(_ file: Int32) -> [UInt8]? {
    var information = stat()
    errno = 0
    guard fstat(file, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
      return nil
    }
    let size = Int(information.st_size)
    let start = max(0, size - Self.longestFile)
    var content = [UInt8](repeating: 0, count: size - start)
    let count = pread(file, &content, content.count, start)
    guard count >= 0 else { return nil }
    content.removeLast(content.count - count)
    return start == 0 ? content : Array(content.drop { $0 != UInt8(ascii: "\n") })
  }

  /// Replaces the current file by one with these chunks, atomically.
  private func replace(_ path: String, _ chunks: [[UInt8]]) {
    let draft = path + ".new"
    let file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { return }
    let content = chunks.flatMap { Self.encoded($0) }
    let isWritten = write(file, content, content.count) == content.count
    if close(file) == 0 && isWritten { rename(draft, path) } else { unlink(draft) }
  }

  private static func makeFolders(of path: String) {
    for (index, character) in path.enumerated() where character == "/" && index > 0 {
      mkdir(String(path.prefix(index)), 0o700)
    }
  }

  private static func encoded(_ chunk: [UInt8]) -> [UInt8] {
    var line: [UInt8] = []
    for byte in chunk {
      switch byte {
      case UInt8(ascii: "\n"): line += "\\n".bytes
      case UInt8(ascii: "\\"): line += "\\\\".bytes
      default: line.append(byte)
      }
    }
    return line + [UInt8(ascii: "\n")]
  }

  private static func decoded(_ line: ArraySlice<UInt8>) -> [UInt8] {
    var chunk: [UInt8] = []
    var isEscaped = false
    for byte in line {
      if isEscaped {
        chunk.append(byte == UInt8(ascii: "n") ? UInt8(ascii: "\n") : byte)
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else {
        chunk.append(byte)
      }
    }
    return chunk
  }
}
