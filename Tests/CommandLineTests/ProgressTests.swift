import Foundation
import Testing

/// The live line on a terminal.
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

  private static let group = """
    local UploadOp = flow.op("UploadOp", { needs = { image = "integer" }, run = function(ctx)
      if ctx.index == 1 then error("no") end
      if ctx.index > 37 then pause() end
    end })
    local images = {}
    for i = 1, 120 do images[i] = i end
    local run = flow.new("signup"):data { images = images }
      :add_grouped(UploadOp, { input = "images", max_concurrent = 3, allow_failure = true }):run()
    print("over", run.ok)
    """

  private static let erase = "\r\u{1B}[K"

  @Test("A group shows the ended items and the state of the others")
  func group() throws {
    let session = try start(Self.group)
    try session.expect(
      Self.erase + "[signup] UploadOp 37/120 ████▌ 31% 3 running, 1 failed")
    try goOn()
    let rest = try session.end()
    #expect(rest.status == 0)
    #expect(rest.shown.hasSuffix(Self.erase + "over\ttrue\r\n"))
  }

  @Test("An op shows its progress with the time that is left")
  func op() throws {
    let session = try start(
      """
      flow.op("CountOp", function(ctx) ctx:progress(1.5, 6) pause() end):run()
      flow.op("EndlessOp", function(ctx) ctx:progress(1e308, 1e-308) ctx:progress(2^63, 0) end):run()
      """)
    try session.expect(Self.erase + "[CountOp] CountOp 1.5/6 ███▌ 25%")
    try session.expect(Self.erase + "[CountOp] CountOp 1.5/6 ███▌ 25% 4s left")
    try goOn()
    #expect(try session.end().status == 0)
  }

  @Test("Output replaces the progress line, and an incomplete line is never overwritten")
  func output() throws {
    let session = try start(
      """
      flow.spawn(function()
        pause(1)
        print("a line")
        io.write("half ")
        io.flush()
        pause(2)
        io.write("a line\\n")
        pause(3)
        io.stderr:write("to stderr\\n")
        pause(4)
      end)
      flow.op("CountOp", function(ctx) ctx:progress(1) pause(4) end):run()
      """)
    let line = "[CountOp] CountOp 1"
    try session.expect(Self.erase + line)
    try goOn(1)
    #expect(try session.expect("half ").hasSuffix(Self.erase + "a line\r\nhalf "))
    try goOn(2)
    #expect(try session.expect("a line\r\n") == "a line\r\n")
    try session.expect(Self.erase + line)
    try goOn(3)
    #expect(try session.expect("to stderr\r\n").hasSuffix(Self.erase + "to stderr\r\n"))
    try goOn(4)
    #expect(try session.end().status == 0)
  }

  @Test("The progress line fits the width of the terminal")
  func width() throws {
    let session = try start(Self.group, columns: 20)
    try session.expect(Self.erase + "[signup] UploadOp" + Self.erase)
    session.resize(columns: 10)
    try session.expect(Self.erase + "[signup]" + Self.erase)
    session.resize(columns: 5)
    try session.expect(Self.erase + "[sig" + Self.erase)
    session.resize(columns: 30)
    try session.expect(Self.erase + "[signup] UploadOp 37/120 31%" + Self.erase)
    try goOn()
    #expect(try session.end().status == 0)
  }

  @Test("The bar is ASCII where the locale isn't UTF-8")
  func plainBar() throws {
    let session = try start(Self.group, environment: ["LC_ALL": "C"])
    try session.expect(Self.erase + "[signup] UploadOp 37/120 #### 31%")
    try goOn()
    #expect(try session.end().status == 0)
  }

  @Test(
    "Progress is shown only on request",
    arguments: [(["--no-progress"], "xterm"), ([], "dumb"), ([], "")])
  func nothing(_ options: [String], _ terminal: String) throws {
    let session = try start(
      """
      flow.spawn(function() flow.sleep(0.3) print("ready") end)
      """ + Self.group, options, environment: ["TERM": terminal])
    #expect(try session.expect("ready\r\n") == "ready\r\n")
    try goOn()
    #expect(try session.end().shown == "over\ttrue\r\n")
  }

  @Test("The progress line is hidden while a program uses the terminal")
  func program() throws {
    let session = try start(
      """
      flow.op("CountOp", function(ctx)
        ctx:progress(1)
        pause(1)
        flow.exec({ "sh", "-c", "printf 'a question? '; until [ -e '" .. path(2) .. "' ]; do :; done; echo" },
          { capture = false }):await()
      end):run()
      """)
    try session.expect(Self.erase + "[CountOp] CountOp 1")
    try goOn()
    try session.expect(Self.erase + "a question? ")
    try goOn(2)
    #expect(try session.end().shown == "\r\n")
  }

  @Test("Ctrl-C removes the progress line")
  func interruption() throws {
    let session = try start("flow.op('CountOp', function(ctx) ctx:progress(1) pause() end):run()")
    try session.expect(Self.erase + "[CountOp] CountOp 1")
    try session.type("\u{3}")
    let rest = try session.end()
    #expect(rest.status == 1)
    #expect(rest.shown.contains(Self.erase))
    #expect(rest.shown.contains("interrupted!"))
  }
}
