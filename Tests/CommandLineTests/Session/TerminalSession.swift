import Foundation
import Glibc

/// flowlua on a pseudo-terminal of its own: what a person types and sees.
final class TerminalSession {
  private let master: Int32
  private var process = pid_t()
  private var status: Int32?
  /// The output that was shown and nobody has expected so far.
  private(set) var unseen: [UInt8] = []
  /// The last byte that was expected.
  private var lastSeen = UInt8(ascii: "\n")
  /// Whether lines are edited, so that control sequences precede a prompt.
  let isEdited: Bool

  /// How long a test waits, in seconds: a machine may be busy with other things.
  static let patience = 60.0

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Starts flowlua; where it keeps its history is up to the test.
  ///
  /// With `usesShell` a shell is started instead that has jobs, and flowlua's name in `FLOWLUA`.
  init(
    _ arguments: [String] = [], state: TemporaryFolder,
    environment changes: [String: String?] = [:], columns: Int = 80, usesShell: Bool = false
  ) throws {
    // The work of posix_openpt, unlockpt and ptsname, which Swift's Glibc doesn't import.
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (lock, number): (Int32, Int32) = (0, 0)
    guard master >= 0, ioctl(master, 0x4004_5431 /* TIOCSPTLCK */, &lock) == 0,
      ioctl(master, 0x8004_5430 /* TIOCGPTN */, &number) == 0
    else { throw Failure(description: "there is no pseudo-terminal") }
    let name = "/dev/pts/\(number)"
    var environment: [String: String] = [
      "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin", "TERM": "xterm",
      "HOME": state.path, "XDG_STATE_HOME": state.path, "INPUTRC": "/dev/null", "LC_ALL": "C",
      "EDITRC": "/dev/null", "PS1": Self.shellPrompt, "FLOWLUA": Project.binary,
    ]
    for (key, value) in changes { environment[key] = value }
    isEdited = environment["FLOWLUA_READLINE"] != "none" && environment["TERM"] != "dumb"
    resize(columns: columns)
    // A terminal may discard output right after a Ctrl-C, which no test could expect.
    var modes = termios()
    tcgetattr(master, &modes)
    modes.c_lflag |= tcflag_t(NOFLSH)
    tcsetattr(master, TCSANOW, &modes)

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // The first terminal that the leader of a session opens becomes the session's own.
    posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&actions, 0, 1)
    posix_spawn_file_actions_adddup2(&actions, 0, 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The signals of the tests' own process are none of flowlua's.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    let flags = 0x80 /* POSIX_SPAWN_SETSID */ | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    posix_spawnattr_setflags(&attributes, Int16(flags))
    let words =
      ["/usr/bin/env", "--chdir", Project.root.path]
      + (usesShell ? ["sh", "-i"] : [Project.binary])
      + arguments
    let argv = words.map { strdup($0) } + [nil]
    let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { (argv + envp).forEach { free($0) } }
    let problem = posix_spawn(&process, words[0], &actions, &attributes, argv, envp)
    guard problem == 0 else { throw Failure(description: "flowlua can't be started") }
  }

  deinit {
    if status == nil {
      kill(process, SIGKILL)
      var ending: Int32 = 0
      waitpid(process, &ending, 0)
    }
    close(master)
  }

  func resize(columns: Int) {
    var size = winsize(ws_row: 24, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    withUnsafeMutablePointer(to: &size) { _ = ioctl(master, UInt(TIOCSWINSZ), $0) }
  }

  func send(signal: Int32) { kill(process, signal) }

  /// Types keys.
  func type(_ keys: String) throws { try type(Array(keys.utf8)) }

  func type(_ keys: [UInt8]) throws {
    var left = keys[...]
    while !left.isEmpty {
      let count = left.withUnsafeBytes { write(master, $0.baseAddress, $0.count) }
      guard count > 0 else { throw Failure(description: "nobody reads any more") }
      left = left.dropFirst(count)
    }
  }

  /// Types keys that show nothing, and waits until flowlua has read them and waits for more.
  func typeUnseen(_ keys: [UInt8], seconds: Double = patience) throws {
    func bytesRead() throws -> Int {
      let counts = try String(contentsOfFile: "/proc/\(process)/io", encoding: .utf8)
      let first = counts.split(separator: "\n").first { $0.hasPrefix("rchar: ") }
      return first.flatMap { Int($0.dropFirst(7)) } ?? 0
    }
    func sleeps() throws -> Bool {
      try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8).contains(") S ")
    }
    let wanted = try bytesRead() + keys.count
    try type(keys)
    let deadline = ContinuousClock.now + .seconds(seconds)
    while try bytesRead() < wanted || !sleeps() {
      if ContinuousClock.now > deadline { throw Failure(description: "flowlua doesn't read") }
      usleep(1000)
    }
  }

  /// Types a line, waits for the next prompt and returns the text shown between.
  @discardableResult
  func enter(_ line: String) throws -> String {
    try type(line + "\r")
    return try expect("\n") + (try prompt())
  }

  /// The prompt of a shell.
  static let shellPrompt = "shell$ "

  /// Waits for the prompt for a new chunk, `>> ` for a further line of one.
  @discardableResult
  func prompt(_ text: String = "> ") throws -> String {
    // The line editor first clears the rest of the screen and requests bracketed paste.
    if isEdited { return try expect("\r\u{1B}[J\u{1B}[?2004h" + text) }
    return try expect(text) { $0 == UInt8(ascii: "\n") }
  }

  /// Waits until a text is shown and returns everything up to its end.
  @discardableResult
  func expect(
    _ text: String, seconds: Double = patience, behind fits: (UInt8) -> Bool = { _ in true }
  ) throws -> String {
    let wanted = Array(text.utf8)
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      if let end = end(of: wanted, behind: fits) {
        let seen = unseen[..<end]
        if let last = seen.last { lastSeen = last }
        unseen.removeFirst(end)
        // The sequence that ends the editing of a line is no part of what follows.
        return String(decoding: seen, as: UTF8.self)
          .replacingOccurrences(of: "\u{1B}[?2004l\r", with: "")
      }
      guard try readMore(until: deadline) else {
        throw Failure(
          description: "'\(text)' wasn't shown, but '\(String(decoding: unseen, as: UTF8.self))'")
      }
    }
  }

  /// Waits for the end and returns the status, as a shell has it, and the remaining text.
  func end(seconds: Double = patience) throws -> (status: Int32, shown: String) {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while try readMore(until: deadline) {}
    var ending: Int32 = 0
    while waitpid(process, &ending, WNOHANG) == 0 {
      if ContinuousClock.now > deadline { throw Failure(description: "flowlua doesn't end") }
      usleep(500)
    }
    status = ending
    let signal = ending & 0x7f
    return (
      signal == 0 ? (ending >> 8) & 0xff : 128 + signal, String(decoding: unseen, as: UTF8.self)
    )
  }

  /// Whether the terminal echoes what is typed and hands it over by lines.
  var isCooked: Bool {
    var modes = termios()
    tcgetattr(master, &modes)
    return modes.c_lflag & tcflag_t(ECHO) != 0 && modes.c_lflag & tcflag_t(ICANON) != 0
  }

  /// false at the end, or when the time is up.
  private func readMore(until deadline: ContinuousClock.Instant) throws -> Bool {
    let left = deadline - ContinuousClock.now
    guard left > .zero else { return false }
    let milliseconds = Int32(clamping: left.components.seconds * 1000 + 1000)
    var input = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    guard poll(&input, 1, milliseconds) > 0 else { return false }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(master, &buffer, buffer.count)
    guard count > 0 else { return false }
    unseen += buffer[..<count]
    return true
  }

  private func end(of wanted: [UInt8], behind fits: (UInt8) -> Bool) -> Int? {
    guard unseen.count >= wanted.count, let first = wanted.first else { return nil }
    for start in 0...(unseen.count - wanted.count)
    where unseen[start] == first && unseen[start...].starts(with: wanted)
      && fits(start > 0 ? unseen[start - 1] : lastSeen)
    {
      return start + wanted.count
    }
    return nil
  }
}

/// A folder for the time of a test.
final class TemporaryFolder {
  let path: String

  init() throws {
    path =
      FileManager.default.temporaryDirectory
      .appendingPathComponent("flowlua-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var history: String { path + "/flowlua/history" }
}
