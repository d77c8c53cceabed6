import Foundation
import Testing

/// The progress on a terminal; Tests/scripts/progress has what its screen shows.
@Suite("Progress on a terminal")
struct ProgressTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Runs a script whose `pause(n)` waits until the test says `goOn(n)`.
  private func start(
    _ script: String, _ options: [String] = [], columns: Int = 80,
    environment: [String: String?] = [:]
  ) throws -> TerminalSession {
    let path = folder.path + "/script.lua"
    let prelude = """
      local flow = require "flow"
      local function path(n) return arg[1] .. (n or 1) end
      local function exists(n) local f = io.open(path(n)) if f then f:close() end return f end
      local function pause(n) while not exists(n) do flow.sleep(0.002) end end

      """
    try Data((prelude + script).utf8).write(to: URL(filePath: path))
    return try TerminalSession(
      options + [path, folder.path + "/go"], state: folder,
      environment: ["LC_ALL": "C.UTF-8"].merging(environment) { $1 }, columns: columns)
  }

  private func goOn(_ number: Int = 1) throws {
    try Data().write(to: URL(filePath: folder.path + "/go\(number)"))
  }

  private static let count = """
    flow.op("CountOp", function(ctx) ctx:progress(1, 2) pause() end):run()
    print("over")
    """

  /// The text that removes the progress: the cursor returns to its top.
  private static let erase = "\u{1B}8\u{1B}[J"

  @Test("Progress is shown below other output, and removed at the end")
  func shown() throws {
    let session = try start(Self.count)
    try session.expect("\rCountOp \u{1B}[32m███████▌\u{1B}[0m\u{1B}[2m░░░░░░░\u{1B}[0m 1/2 50% 0s")
    try goOn()
    let rest = try session.end()
    #expect(rest.status == 0)
    #expect(rest.shown.hasSuffix(Self.erase + "over\r\n"))
  }

  @Test("The bar is ASCII where the locale isn't UTF-8")
  func plainBar() throws {
    let session = try start(Self.count, ["--color=never"], environment: ["LC_ALL": "C"])
    try session.expect("\rCountOp #######-------- 1/2 50% 0s")
    try goOn()
    #expect(try session.end().status == 0)
  }

  @Test(
    "Progress is shown only on request",
    arguments: [
      (["--no-progress"], "xterm"), (["--progress=never"], "xterm"), ([], "dumb"), ([], ""),
    ])
  func nothing(_ options: [String], _ terminal: String) throws {
    let session = try start(
      """
      flow.spawn(function() flow.sleep(0.3) print("ready") end)

      """ + Self.count, options, environment: ["TERM": terminal])
    #expect(try session.expect("ready\r\n") == "ready\r\n")
    try goOn()
    #expect(try session.end().shown == "over\r\n")
  }

  @Test("Ctrl-C removes the progress")
  func interruption() throws {
    let session = try start(Self.count)
    try session.expect("\rCountOp ")
    try session.type("\u{3}")
    let rest = try session.end()
    #expect(rest.status == 130)
    #expect(rest.shown.contains(Self.erase))
    #expect(rest.shown.contains("interrupted!"))
  }
}
