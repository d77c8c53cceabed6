internal import FlowEngine
internal import FlowScripting
internal import Glibc

/// The process that has started this one as a machine: it sends the URL of the server over standard input, whose end says
/// that the machine isn't needed any more.
final class MachineStarter {
  let url: ByteString
  /// The text with which messages are sealed; nil for that of the environment.
  let key: ByteString?
  /// Whether the input has ended.
  private(set) var isGone = false
  /// Called when it ends.
  var onGone: (() -> Void)?
  private let input: Int32
  private var watch: DescriptorWatch?

  private static let mostBytes = 1 << 16

  /// Reads the line, which has the key after the URL and a space.
  init() throws(CommandLineArguments.Misuse) {
    // What jobs start gets no input, and can't take this one.
    input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    guard input >= 0, nothing >= 0, dup2(nothing, STDIN_FILENO) >= 0 else {
      throw LongOptions.misuse("option '--join -': \(systemMessage(errno))")
    }
    close(nothing)
    guard let line = Self.readLine(input), !line.isEmpty else {
      throw LongOptions.misuse(
        """
        option '--join -' reads the URL of the server from the first line of standard input, which has ended before: \
        does the launcher pass it on? (docker exec -i)
        """)
    }
    let space = line.firstIndex(of: UInt8(ascii: " ")) ?? line.endIndex
    url = ByteString(Array(line[..<space]))
    let rest = line[space...].dropFirst()
    key = rest.isEmpty ? nil : ByteString(Array(rest))
  }

  /// The first line, byte by byte: what follows stays there. Nil for one that doesn't end.
  private static func readLine(_ input: Int32) -> [UInt8]? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while line.count < mostBytes {
      let count = read(input, &byte, 1)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        var waiting = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, -1)
        continue
      }
      if count <= 0 { return nil }
      if byte == UInt8(ascii: "\n") { return line }
      line.append(byte)
    }
    return nil
  }

  /// Begins to wait for the end of the input.
  ///
  /// - Throws: A `SystemError` for a file, which has no end to wait for.
  func watch(on loop: EventLoop) throws(SystemError) {
    watch = try loop.watch(input, InputEndJob(self))
  }

  fileprivate func inputIsReady() {
    var bytes = [UInt8](repeating: 0, count: 512)
    let count = read(input, &bytes, bytes.count)
    // Nothing more is expected.
    if count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR) { return }
    watch?.end()
    isGone = true
    onGone?()
  }
}

/// Notes the end of the input.
private final class InputEndJob: LoopJob {
  private weak var starter: MachineStarter?

  init(_ starter: MachineStarter) { self.starter = starter }

  func run() { starter?.inputIsReady() }
}
