import CFlowSystem
import Glibc

/// The line editor of this process, on a pseudo-terminal that takes the place of stdin and stdout.
final class EditorOnTerminal {
  /// The words that may complete any other.
  var words: [String] = []
  private(set) var lines: [String] = []
  private let master: Int32

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  init(_ library: String) throws {
    // The work of posix_openpt, unlockpt and ptsname, which Swift's Glibc doesn't import.
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (lock, number): (Int32, Int32) = (0, 0)
    guard master >= 0, ioctl(master, 0x4004_5431 /* TIOCSPTLCK */, &lock) == 0,
      ioctl(master, 0x8004_5430 /* TIOCGPTN */, &number) == 0
    else { throw Failure(description: "there is no pseudo-terminal") }
    let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
    guard slave >= 0, dup2(slave, 0) == 0, dup2(slave, 1) == 1 else {
      throw Failure(description: "the pseudo-terminal can't be opened")
    }
    close(slave)
    for (name, value) in [("TERM", "xterm"), ("INPUTRC", "/dev/null"), ("EDITRC", "/dev/null")] {
      setenv(name, value, 1)
    }
    var callbacks = flowsystem_editor_callbacks()
    // Unretained. Safe: the library calls only within the methods below.
    callbacks.context = Unmanaged.passUnretained(self).toOpaque()
    callbacks.line = { EditorOnTerminal.of($0)?.finish($1) }
    callbacks.breaks = { _, _, _ in UnsafePointer(EditorOnTerminal.breaks) }
    callbacks.complete = { context, _, _, _ in EditorOnTerminal.of(context)?.complete() }
    guard flowsystem_editor_open(library, &callbacks) else {
      throw Failure(description: "there is no \(library)")
    }
  }

  deinit { close(master) }

  // Immutable, and never freed.
  private nonisolated(unsafe) static let breaks = strdup(" ")

  private static func of(_ context: UnsafeMutableRawPointer?) -> EditorOnTerminal? {
    context.map { Unmanaged<EditorOnTerminal>.fromOpaque($0).takeUnretainedValue() }
  }

  private func finish(_ line: UnsafePointer<CChar>?) {
    lines.append(line.map { String(cString: $0) } ?? "the end")
  }

  private func complete() {
    for word in words { flowsystem_editor_add_match(word) }
  }

  /// Shows a prompt, types keys, of which the last one ends the line, and returns what was shown.
  func edit(prompt: String, keys: String) throws -> String {
    let count = lines.count
    flowsystem_editor_begin(prompt)
    guard write(master, keys, keys.utf8.count) == keys.utf8.count else {
      throw Failure(description: "the keys can't be typed")
    }
    while lines.count == count {
      var input = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
      guard poll(&input, 1, 30_000) == 1 else {
        throw Failure(description: "the line doesn't end; it shows \(try shown().debugDescription)")
      }
      flowsystem_editor_read()
    }
    return try shown()
  }

  /// Returns everything that was shown and not returned before.
  private func shown() throws -> String {
    let mark: [UInt8] = [0, 0]
    write(1, mark, mark.count)
    var bytes: [UInt8] = []
    while !bytes.suffix(mark.count).elementsEqual(mark) {
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = read(master, &buffer, buffer.count)
      guard count > 0 else { throw Failure(description: "nothing is shown any more") }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Makes a text the input of this process.
func replaceInput(by text: String) throws {
  var ends: [Int32] = [-1, -1]
  guard pipe(&ends) == 0, write(ends[1], text, text.utf8.count) == text.utf8.count,
    dup2(ends[0], 0) == 0
  else { throw EditorOnTerminal.Failure(description: "there is no pipe") }
  close(ends[0])
  close(ends[1])
}
