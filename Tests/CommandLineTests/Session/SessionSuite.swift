import Foundation

/// A suite of tests that type lines into a session.
protocol SessionSuite {
  /// The home of the sessions of one test.
  var state: TemporaryFolder { get }
}

extension SessionSuite {
  /// The libraries that edit lines.
  static var libraries: [String] { ["libreadline.so.8", "libedit.so.2"] }
  /// The libraries, and a session without one.
  static var all: [String] { libraries + ["none"] }

  /// Starts a session, and waits for its first prompt.
  func start(
    _ library: String = "libreadline.so.8", _ arguments: [String] = [],
    environment: [String: String?] = [:], columns: Int = 80
  ) throws -> TerminalSession {
    let session = try TerminalSession(
      arguments, state: state,
      environment: ["FLOWLUA_READLINE": library, "NO_COLOR": "1"].merging(environment) { $1 },
      columns: columns)
    try session.prompt()
    return session
  }

  /// Types the lines of a chunk; returns what the last one shows.
  @discardableResult
  func enter(_ session: TerminalSession, _ lines: [String]) throws -> String {
    for line in lines.dropLast() {
      try session.type(line + "\r")
      try session.prompt(">> ")
    }
    return try session.enter(lines.last ?? "")
  }

  /// Defines `pause()` in a session, which waits until `release`: a test can't know how fast a
  /// session is.
  func definePause(_ session: TerminalSession) throws {
    try session.enter("go = os.getenv 'HOME' .. '/go'")
    try session.enter("function pause() while not io.open(go) do flow.sleep(0.002) end end")
  }

  /// Ends `pause()` in all sessions of the test.
  func release() throws { try Data().write(to: URL(filePath: state.path + "/go")) }
}
