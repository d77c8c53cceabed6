import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("What a host allows its scripts")
struct RestrictionTests {
  private func program(_ permissions: LuaPermissions = .trusted) throws -> ScriptProgram {
    try ScriptProgram(LuaConfiguration(permissions: permissions))
  }

  /// The error that a chunk raises.
  private func error(_ program: ScriptProgram, _ source: String) throws -> String {
    try program.text(
      "local ok, e = pcall(function() \(source) end) return ok and 'no error' or tostring(e)")
  }

  @Test("A worker has the libraries of its host, and nothing leads out of them")
  func workersAreRestricted() throws {
    let program = try program(.workers)
    let text = try program.text(
      #"""
      local flow = require "flow"
      local probe = function(ctx)
        local flow = require "flow"
        local function try(f, ...)
          local ok, e = pcall(f, ...)
          return ok and "allowed" or (tostring(e):gsub("^script.lua:%d+: ", ""))
        end
        local found = {}
        for _, name in ipairs { "io", "debug", "package" } do
          local ok, value = pcall(function() return _G[name] end)
          found[#found + 1] = name .. " " .. tostring(ok and value or nil)
        end
        found[#found + 1] = try(os.execute, "true")
        found[#found + 1] = try(os.exit)
        found[#found + 1] = try(os.getenv, "HOME")
        found[#found + 1] = try(string.dump, print)
        found[#found + 1] = try(loadfile, "x")
        found[#found + 1] = try(require, "lpeg")
        local loaded, message = load("\27Lua")
        found[#found + 1] = tostring(loaded) .. " " .. message
        found[#found + 1] = try(flow.exec, { "true" })
        found[#found + 1] = try(flow.fs.read, "/etc/passwd")
        found[#found + 1] = try(flow.json.read, "/etc/passwd")
        found[#found + 1] = try(flow.http.get, "http://localhost:1")
        ctx:set("found", table.concat(found, "\n"))
      end
      local ProbeOp = flow.op("ProbeOp", { thread = "worker", run = probe, gives = { found = "string" } })
      local run = ProbeOp:run()
      assert(run.ok, run.error)
      local main = ProbeOp:with { thread = "main" }:run()
      return run.data.found .. "\n--\n" .. tostring(main.data.found == run.data.found)
      """#)
    #expect(
      text == """
        io nil
        debug nil
        package nil
        os.execute isn't allowed by the host of the script
        os.exit isn't allowed by the host of the script
        os.getenv isn't allowed by the host of the script
        string.dump isn't allowed by the host of the script
        loadfile isn't allowed by the host of the script
        module 'lpeg' not found: the host of the script allows no modules of files
        nil bytecode isn't allowed by the host of the script
        bad use of 'exec' (the host of the script allows no programs)
        bad use of 'fs.read' (the host of the script allows no files)
        bad use of 'json.read' (the host of the script allows no files)
        bad use of 'flow.http.get' (the host of the script allows no requests)
        --
        true
        """)
  }

  @Test("A state without libraries for it still runs ops, flows, groups and tasks")
  func safeLibrariesRunFlows() throws {
    let program = try program(.workers)
    let text = try program.text(
      """
      local flow = require "flow"
      local DoubleOp = flow.op("DoubleOp", { needs = { n = "integer" }, gives = { m = "integer" },
        run = function(ctx) flow.sleep(1) ctx:set("m", ctx:get "n" * 2) end })
      local wrapped = flow.wrap(DoubleOp, function(ctx, run) return run() end)
      local run = flow.new("f"):data { list = { 1, 2 } }
        :add_grouped(wrapped, { input = "list", output = "out" }):add(flow.ops.PrintOp "x"):run()
      local run2 = flow.op("W", { thread = "worker", gives = { v = "integer" },
        run = function(ctx) ctx:set("v", #flow.json.encode { 1 }) end }):run()
      return table.concat(run.data.out, " ") .. " " .. tostring(run2.ok and run2.data.v or run2.error)
      """)
    #expect(text == "2 4 3")
  }

  @Test("Without workers, making an op or a continuation for one is an error that says why")
  func noWorkers() throws {
    let refusing = try program(LuaPermissions.trusted.subtracting(.workers))
    let op = "flow.op('CountOp', { thread = 'worker', run = function() end })"
    #expect(
      try error(refusing, op)
        == "script.lua:1: bad argument #2 to 'op' (field 'thread': 'CountOp' can't run in a worker, because "
        + "the host of the script allows no workers)")
    #expect(
      try error(refusing, "flow.resolved(1):next('worker', function() end)")
        == "script.lua:1: bad argument #1 to 'next' (the host of the script allows no workers)")
    let none = try program()
    none.host.workerLimit = 0
    #expect(
      try error(none, "flow.op('CountOp', function() end):with { thread = 'worker' }")
        == "script.lua:1: bad argument #1 to 'with' (field 'thread': 'CountOp' can't run in a worker, because "
        + "the host of the script has workerLimit 0, so that there are no workers)")
    #expect(
      try error(none, "flow.op('CountOp', { thread = 'main', run = function() end })") == "no error"
    )
  }

  @Test("Only the ops of flowlua that scripts have the permission for are in flow.ops")
  func builtInOps() throws {
    let names =
      "local names = {} for name in pairs(flow.ops) do names[#names + 1] = name end "
      + "return table.concat(names, ' ')"
    #expect(try program().text(names) == "ExecOp HTTPOp PrintOp ReadFileOp SleepOp WriteFileOp")
    let safe = try program(.restricted)
    #expect(try safe.text(names) == "PrintOp SleepOp")
    #expect(
      try error(safe, "return flow.ops.ExecOp")
        == "script.lua:1: flow.ops.ExecOp isn't there: the host of the script doesn't allow it")
    #expect(try safe.text("return flow.ops.NosuchOp") == "nil")
    let noPrograms = try program([.files, .requests])
    #expect(try noPrograms.text(names) == "HTTPOp PrintOp ReadFileOp SleepOp WriteFileOp")
  }

  @Test("A host can remove ops of flowlua, and put its own in their places")
  func replacedOps() throws {
    let program = try program()
    let host = program.host
    #expect(host.unregister("ExecOp"))
    #expect(!host.unregister("ExecOp"))
    #expect(!host.unregister("NosuchOp"))
    #expect(try program.text("return flow.ops.ExecOp") == "nil")
    try program.run("before = flow.ops.PrintOp 'x'")
    host.register(
      OpClass("PrintOp") { arguments in
        let text = try arguments.string(1)
        return Op("PrintOp") { context in context.log("own \(text)") }
      }, replacing: true)
    host.register(Op("ExecOp") { context in context.log("no program") })
    let text = try program.text(
      """
      local function said(op) return op:run():summary():match("Op%] (%l[^\\n]*)") end
      return said(flow.ops.PrintOp "y") .. ", " .. said(before) .. ", " .. said(flow.ops.ExecOp)
      """)
    #expect(text == "own y, x, no program")
  }

  @Test(
    "Functions with effects that the host doesn't allow raise an error that names them",
    arguments: [
      ("flow.fs.read('x')", "fs.read", "files"), ("flow.fs.temp_dir()", "fs.temp_dir", "files"),
      ("flow.json.read('x')", "json.read", "files"),
      ("flow.json.write('x', 1)", "json.write", "files"),
      ("flow.json.lines { path = 'x' }", "json.lines", "files"), ("flow.read()", "read", "files"),
      (
        "flow.op('A', function() end):run():trace('x')",
        "run:trace", "files"
      ),
      ("flow.http('http://localhost:1')", "flow.http", "requests"),
      ("flow.http.get('http://localhost:1')", "flow.http.get", "requests"),
      ("flow.exec { 'true' }", "exec", "programs"),
    ])
  func effects(_ source: String, _ function: String, _ effect: String) throws {
    let program = try program(.restricted)
    #expect(
      try error(program, source)
        == "script.lua:1: bad use of '\(function)' (the host of the script allows no \(effect))")
  }

  @Test("A request can't read or write files that the host doesn't allow")
  func filesOfRequests() throws {
    let program = try program(.requests)
    for field in ["save", "upload", "ca", "cert", "key"] {
      #expect(
        try error(program, "flow.http('http://localhost:1', { \(field) = '/tmp/x' })")
          == "script.lua:1: bad argument #2 to 'flow.http' (field '\(field)': the host of the script allows no files)"
      )
    }
    let part = try error(
      program, "flow.http('http://localhost:1', { files = { a = { path = '/tmp/x' } } })")
    #expect(part.hasSuffix("(field 'files': the host of the script allows no files)"))
  }

  @Test("A restricted state closes its host, too, whichever way both are made")
  func oneSetting() async throws {
    let scripts = [
      (
        "flow.fs.read '/etc/passwd'",
        "bad use of 'fs.read' (the host of the script allows no files)"
      ),
      (
        "flow.http 'http://127.0.0.1:1/'",
        "bad use of 'flow.http' (the host of the script allows no requests)"
      ),
      ("flow.exec { 'true' }", "bad use of 'exec' (the host of the script allows no programs)"),
      ("io.open '/etc/passwd'", "attempt to index a nil value (global 'io')"),
    ]
    let thread = try await ScriptThread(permissions: .restricted)
    for (script, message) in scripts {
      let chunk =
        "local flow = require 'flow' return tostring(select(2, pcall(function() \(script) end)))"
      let result = try await ScriptHost.run(
        script: .text(chunk, name: "x"), permissions: .restricted)
      #expect(try result.value(as: String.self).hasSuffix(message), "\(script)")
      let text = try await thread.perform { host in
        try host.vm.call(host.vm.load(chunk, name: "x"), as: String.self)
      }
      #expect(text.hasSuffix(message), "\(script)")
    }
    await thread.shutdown()
  }

  @Test("Each permission opens what it says, and nothing else", arguments: 0..<6)
  func each(_ bit: Int) throws {
    let permissions = LuaPermissions(rawValue: 1 << bit)
    let program = try program(permissions)
    let probes: [(permission: LuaPermissions, source: String)] = [
      (.files, "io.open('/')"), (.files, "os.getenv('HOME')"), (.files, "loadfile('/nosuch')"),
      (.files, "flow.fs.exists('/')"), (.files, "assert(flow.ops.ReadFileOp)"),
      (.requests, "assert(flow.ops.HTTPOp)"), (.programs, "assert(flow.ops.ExecOp)"),
      (.workers, "flow.op('W', { thread = 'worker', run = function() end })"),
      (.modules, "assert(package.path)"), (.unsafeLibraries, "debug.getregistry()"),
      (.unsafeLibraries, "string.dump(function() end)"),
    ]
    for (permission, source) in probes {
      // The library `package` comes with both.
      let opens =
        permissions == permission || permission == .modules && permissions == .unsafeLibraries
      #expect((try error(program, source) == "no error") == opens, "\(source)")
    }
  }

  @Test("Help doesn't list what the host doesn't allow")
  func help() throws {
    let program = try program(.restricted)
    let host = program.host
    let os = host.help(about: try host.vm.global("os")).description
    #expect(os.contains("os.time(") && !os.contains("os.execute(") && !os.contains("os.exit("))
    let module = host.help(about: .reference(host.module)).description
    #expect(
      module.contains("flow.sleep(") && !module.contains("flow.exec(")
        && !module.contains("flow.read("))
    #expect(host.help(about: .string("io.open")).description.contains("no help"))
    #expect(host.help(about: .string("os.time")).description.hasPrefix("os.time("))
  }
}
