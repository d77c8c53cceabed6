import FlowEngine
import FlowScripting
import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("The memory limit counts what Swift holds")
struct HostMemoryTests {
  private static let limit = 8_000_000

  private func program() throws -> ScriptProgram {
    try ScriptProgram(LuaConfiguration(memoryLimit: Self.limit))
  }

  /// The bytes that runs of a program hold.
  private func held(_ program: ScriptProgram) -> Int { program.loop.memory?.held ?? 0 }

  /// Runs a chunk that may fail for lack of memory; returns the most bytes that its runs held whenever it
  /// called `note`.
  private func most(_ program: ScriptProgram, _ source: String) throws -> Int {
    let loop = program.loop
    var most = 0
    let note = try program.vm.makeFunction { call in
      most = max(most, loop.memory?.held ?? 0)
      return call.answer()
    }
    try program.vm.setGlobal("note", .reference(note))
    do {
      try program.run(source)
    } catch let error as LuaError {
      #expect(error.code == .memory)
    }
    return most
  }

  @Test("A log that is flooded with a text ends the op, and the host can be used again")
  func flood() throws {
    let program = try program()
    let most = try most(
      program,
      """
      flow.op("FloodOp", function(ctx)
        local line = ("x"):rep(400)
        while true do ctx:log(line) note() end
      end):run()
      """)
    #expect(most > Self.limit / 4 && most < 4 * Self.limit)
    try program.collect()
    #expect(try program.text("return ('x'):rep(10)") == "xxxxxxxxxx")
  }

  @Test(
    "A script that catches the error can't keep more",
    arguments: ["ctx.log, ctx, big", "ctx.set, ctx, keys[i], big", "ctx.log, ctx, 'a', big"])
  func caught(_ call: String) throws {
    let program = try program()
    let most = try most(
      program,
      """
      flow.op("GreedyOp", function(ctx)
        local big, keys = ("x"):rep(200000), {}
        for i = 1, 300 do keys[i] = "key" .. i end
        for i = 1, 300 do
          pcall(\(call))
          note()
        end
      end):run()
      """)
    #expect(most > Self.limit / 4 && most < 2 * Self.limit)
  }

  @Test("The outputs of a group count")
  func group() throws {
    let program = try program()
    let text = try program.text(
      """
      local items = {}
      for i = 1, 200 do items[i] = i end
      local BigOp = flow.op("BigOp", { needs = { n = "integer" }, gives = { big = "string" },
        run = function(ctx) ctx:set("big", ("x"):rep(200000) .. ctx:get "n") end })
      local run = flow.new("big"):data { items = items }
        :add_grouped(BigOp, { input = "items", output = "bigs" }):run()
      return run.error.message:match("not enough memory")
      """)
    #expect(text == "not enough memory")
  }

  @Test("A program that writes more than the limit is stopped, and the error names the limit")
  func programOutput() throws {
    let program = try program()
    let results = try program.run(
      """
      local run = flow.op("YesOp", function() flow.exec({ "yes" }):await() end):run()
      local task = flow.exec { "sh", "-c", "echo problem >&2; exec yes" }
      local ok, e = pcall(task.await, task)
      return run.error.message, run.error.kind, e.message
      """)
    let texts = try results.map { try program.vm.tostring($0).description }
    #expect(
      texts == [
        "yes was stopped: its output exceeds the memory limit of 8000000 bytes", "memory",
        "sh -c 'echo problem >&2; exec yes' was stopped: its output exceeds the memory limit of "
          + "8000000 bytes: problem",
      ])
    try program.collect()
    #expect(held(program) < 100_000)
  }

  @Test("A program that writes an endless line is stopped at the limit")
  func endlessLine() throws {
    let program = try program()
    let text = try program.text(
      """
      local task = flow.exec { "head", "-c", "100000000", "/dev/zero" }
      local count = 0
      pcall(function() for line in task:lines() do count = count + 1 end end)
      local ok, e = pcall(task.await, task)
      return count .. " " .. e.message
      """)
    #expect(
      text
        == "0 head -c 100000000 /dev/zero was stopped: its output exceeds the memory limit of "
        + "8000000 bytes"
    )
    try program.collect()
    #expect(held(program) < 100_000)
  }

  @Test("Outputs count as long as a script has the tasks of their programs")
  func keptOutputs() throws {
    let program = try program()
    try program.run(
      """
      tasks = { flow.exec { "head", "-c", "1000000", "/dev/zero" } }
      tasks[1]:await()
      """)
    #expect(held(program) >= 1_000_000)
    let text = try program.text(
      """
      for i = 2, 100 do
        tasks[i] = flow.exec { "head", "-c", "1000000", "/dev/zero" }
        local ok, e = pcall(tasks[i].await, tasks[i])
        if not ok then return tostring(e) end
      end
      """)
    #expect(text.contains("memory"))
    try program.run("tasks = nil")
    try program.collect()
    #expect(held(program) < 100_000)
    #expect(
      try program.text("local t = flow.exec { 'printf', 'abc' } return #t:await().stdout") == "3")
  }

  @Test("The memory of a run that nobody has any more is available again")
  func released() throws {
    let program = try program()
    let text = try program.text(
      """
      local big = ("x"):rep(500000)
      local LogOp = flow.op("LogOp", function(ctx) ctx:log(big) ctx:log(big .. "y") end)
      for i = 1, 100 do
        local run = LogOp:run()
        assert(run.ok, run.error)
      end
      return "done"
      """)
    #expect(text == "done")
    try program.collect()
    #expect(held(program) < 3_000_000)
  }

  @Test("Nothing is counted without a limit, and a limit that is set later counts")
  func laterLimit() throws {
    let program = try ScriptProgram()
    #expect(program.loop.memory == nil)
    program.vm.memoryLimit = Self.limit
    #expect(program.loop.memory != nil)
  }

  @Test("A file larger than the limit isn't read")
  func file() throws {
    let path = "/tmp/flowlua-large-\(getpid())"
    let file = try #require(fopen(path, "w"))
    ftruncate(fileno(file), off_t(2 * Self.limit))
    fclose(file)
    defer { unlink(path) }
    let program = try program()
    let text = try program.text("return tostring(select(2, pcall(flow.fs.read, '\(path)')))")
    #expect(text.contains("File too large"))
  }
}
