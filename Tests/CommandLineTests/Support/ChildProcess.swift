import Foundation
import Glibc

/// A program that runs to its end: what it printed and how it ended.
struct ChildProcess {
  /// The exit status, or 128 plus the number of the signal that ended it, as a shell has it.
  let status: Int32
  let standardOutput: [UInt8]
  let standardError: [UInt8]

  enum Failure: Error, CustomStringConvertible {
    case notStarted(program: String, reason: String)
    case tooSlow(program: String, seconds: Int, standardError: String)

    var description: String {
      switch self {
      case .notStarted(let program, let reason):
        "\(program) can't be started: \(reason)"
      case .tooSlow(let program, let seconds, let standardError):
        "\(program) was killed after \(seconds) s; it had written to stderr: \(standardError)"
      }
    }
  }

  /// How long a program may take, in seconds. A sanitizer makes it many times slower.
  static let patience = ProcessInfo.processInfo.environment["FLOWLUA_SANITIZER"] == nil ? 300 : 400

  /// Runs a program and waits for its end.
  ///
  /// - Parameters:
  ///   - program: The path of the program, which is also its `argv[0]`.
  ///   - arguments: The further elements of `argv`.
  ///   - environment: Variables beside those of this process, or in their place.
  ///   - directory: The working directory.
  ///   - seconds: After this time it is killed.
  /// - Returns: The output, and how it ended.
  /// - Throws: `Failure` when it can't be started or is too slow.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String], in directory: String,
    seconds: Int = ChildProcess.patience
  ) throws -> ChildProcess {
    // Files, not pipes: nobody has to read while it runs, and no program blocks on a full pipe.
    let scratch = FileManager.default.temporaryDirectory
      .appendingPathComponent("flowlua-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: scratch) }
    let output = scratch.appendingPathComponent("stdout")
    let errors = scratch.appendingPathComponent("stderr")

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let writing = O_WRONLY | O_CREAT | O_TRUNC
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output.path, writing, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errors.path, writing, 0o600)
    // Not those of tests that execute at the same time: a script may count what it can open.
    // To close one that isn't open is no error.
    for descriptor in Int32(3)..<1024 { posix_spawn_file_actions_addclose(&actions, descriptor) }

    let variables = ProcessInfo.processInfo.environment
      .merging(environment) { _, new in new }
      .map { "\($0.key)=\($0.value)" }
    var identifier = pid_t()
    // env changes the folder and becomes the program: spawning has no portable way to do that.
    let env = "/usr/bin/env"
    let problem = withCStrings([env, "--chdir", directory, program] + arguments) { argv in
      withCStrings(variables) { envp in
        posix_spawn(&identifier, env, &actions, nil, argv, envp)
      }
    }
    guard problem == 0 else {
      throw Failure.notStarted(program: program, reason: String(cString: strerror(problem)))
    }

    let deadline = ContinuousClock.now + .seconds(seconds)
    var ending: Int32 = 0
    while waitpid(identifier, &ending, WNOHANG) == 0 {
      if ContinuousClock.now > deadline {
        kill(identifier, SIGKILL)
        waitpid(identifier, &ending, 0)
        let said = String(decoding: bytes(ofFile: errors.path), as: UTF8.self)
        throw Failure.tooSlow(program: program, seconds: seconds, standardError: said)
      }
      usleep(500)
    }
    let signal = ending & 0x7f
    return ChildProcess(
      status: signal == 0 ? (ending >> 8) & 0xff : 128 + signal,
      standardOutput: bytes(ofFile: output.path),
      standardError: bytes(ofFile: errors.path))
  }

  /// The content of a file; not by Foundation, which leaks a buffer for each empty one.
  private static func bytes(ofFile path: String) -> [UInt8] {
    guard let file = fopen(path, "rb") else { return [] }
    defer { fclose(file) }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 {
      content.append(contentsOf: buffer[..<count])
    }
    return content
  }

  private static func withCStrings<Result>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
  ) -> Result {
    let copies = strings.map { strdup($0) }
    defer { copies.forEach { free($0) } }
    return body(copies + [nil])
  }
}
