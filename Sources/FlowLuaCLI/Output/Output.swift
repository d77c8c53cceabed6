internal import FlowEngine
internal import FlowSystem

/// The output of the program itself. It uses the C streams of Lua's own output, so that the order
/// is kept.
enum Output {
  /// A line on stderr, after the program's name if there is one. A zero byte ends the message, as it does for
  /// lua5.4.
  ///
  /// - Parameters:
  ///   - program: The program's name.
  ///   - message: The message.
  ///   - style: Adds colours to it; nil for none.
  static func error(
    program: ByteString?, _ message: ByteString, style: ((ByteString) -> ByteString)? = nil
  ) {
    let text = shown(ByteString(message.bytes.prefix { $0 != 0 }), toError: true)
    let name = program.map { shown($0, toError: true) + ": " } ?? ""
    write(styled: name + (style?(text) ?? text) + "\n", toError: true)
  }

  /// Text on stdout or stderr. Names, errors and output of programs in it may come from anywhere: on a terminal they must
  /// not move the cursor, hide lines or set the title.
  static func write(_ text: ByteString, toError: Bool) {
    write(styled: shown(text, toError: toError), toError: toError)
  }

  /// Text on stdout or stderr that is for the terminal as it is: with colours around texts that have no control
  /// characters any more.
  static func write(styled text: ByteString, toError: Bool) {
    text.withUnsafeBytes { bytes in
      flowsystem_write(bytes.baseAddress, bytes.count, toError)
    }
  }

  private static func shown(_ text: ByteString, toError: Bool) -> ByteString {
    isatty(toError ? STDERR_FILENO : STDOUT_FILENO) != 0 ? text.forTerminal : text
  }
}

/// Files that the program itself reads and writes.
enum TextFile {
  /// The contents of a file; nil, with `errno`, if it can't be read.
  static func read(_ path: ByteString) -> [UInt8]? {
    let name = path.bytes.map { CChar(bitPattern: $0) } + [0]
    let file = open(name, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var count = 0
    repeat {
      count = FlowSystem.read(file, &buffer, buffer.count)
      if count > 0 { content += buffer[..<count] }
    } while count > 0 || count < 0 && errno == EINTR
    let problem = errno
    close(file)
    errno = problem
    return count < 0 ? nil : content
  }

  /// Replaces the contents of a file; returns the reason of a failure, nil for success.
  static func write(_ text: ByteString, to path: ByteString) -> String? {
    let name = path.bytes.map { CChar(bitPattern: $0) } + [0]
    let isWritten = text.withUnsafeBytes { bytes in
      flowsystem_write_file(name, bytes.baseAddress, bytes.count)
    }
    return isWritten ? nil : String(cString: strerror(errno))
  }

  /// Why a file can't be written, as far as that is known without making or changing it; nil if nothing is known.
  /// `isReplaced`: another file in the same folder gets its name.
  static func obstacle(to path: ByteString, isReplaced: Bool) -> String? {
    var status = stat()
    if path.withCString({ stat($0, &status) }) == 0 {
      let kind = status.st_mode & S_IFMT
      if kind == S_IFDIR { return String(cString: strerror(EISDIR)) }
      if path.withCString({ access($0, W_OK) }) != 0 { return String(cString: strerror(errno)) }
      return kind == S_IFREG && isReplaced ? obstacle(inFolderOf: path.resolvedPath) : nil
    }
    if errno != ENOENT { return String(cString: strerror(errno)) }
    return obstacle(inFolderOf: path)
  }

  /// Why no file can be made at a path.
  private static func obstacle(inFolderOf path: ByteString) -> String? {
    let name = path.bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    if name == path.bytes.count { return String(cString: strerror(EISDIR)) }
    // With its slash: a file isn't a folder.
    let folder: ByteString = name == 0 ? "." : ByteString(path.bytes[..<name])
    let isPossible = folder.withCString { access($0, W_OK | X_OK) } == 0
    return isPossible ? nil : String(cString: strerror(errno))
  }

  /// The path from the root and without links of a file, also of one that isn't there yet; nil for anything else, such as a
  /// pipe, which takes what several write.
  static func place(of path: ByteString) -> ByteString? {
    if let status = try? FileStatus.read(path, follows: true) {
      return status.kind == .file ? path.resolvedPath : nil
    }
    guard let slash = path.bytes.lastIndex(of: UInt8(ascii: "/")) else {
      return ("." as ByteString).resolvedPath + "/" + path
    }
    let folder = ByteString(path.bytes[...slash]).resolvedPath
    return folder + "/" + ByteString(path.bytes[(slash + 1)...])
  }

  /// Whether a path is a script's: by its name, or by `#!` at its start.
  static func isScript(_ path: ByteString) -> Bool {
    if path.bytes.reversed().starts(with: ".lua".bytes.reversed()) { return true }
    // A pipe would be waited for.
    guard (try? FileStatus.read(path, follows: true))??.kind == .file else { return false }
    return (try? FileReader(path).read(2, Cancellation())) == "#!"
  }

  /// Makes a file with this content; returns false, and changes nothing, if there is something at the path.
  static func create(_ text: ByteString, at path: ByteString) throws(SystemError) -> Bool {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
    guard let file = path.withCString({ open($0, flags, 0o666) }) else {
      throw SystemError("write", path, EINVAL)
    }
    guard file >= 0 else {
      if errno == EEXIST { return false }
      throw SystemError("write", path, errno)
    }
    close(file)
    do throws(SystemError) {
      try Files.append(text, to: path, Cancellation())
    } catch {
      _ = path.withCString { unlink($0) }
      throw error
    }
    return true
  }
}

extension ByteString {
  /// The path without links, from the root; as it is if there is no such file.
  var resolvedPath: ByteString {
    guard let resolved = withCString({ realpath($0, nil) }) ?? nil else { return self }
    defer { free(resolved) }
    return ByteString(cString: resolved)
  }
}
