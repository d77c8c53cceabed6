import FlowEngine
@_spi(Scripting) import LuaVM
import Testing

@testable import FlowScripting

@Suite("Help and completion")
struct HelpTests {
  @Test("Every name of the module has a text")
  func moduleNames() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    let reader = AnnotationReader()
    let names = try host.vm.pairs(of: host.module).compactMap { pair -> String? in
      guard case .string(let name) = pair.key else { return nil }
      return name.description
    }
    #expect(names.count > 25)
    for name in names {
      let lines = reader.text(name, of: ScriptHost.modulePart)?.split(separator: "\n") ?? []
      #expect(lines.count >= 2, "flow.\(name) has no text")
    }
    // And no text is about a name that there isn't. Some are looked up when they are read.
    let all = names + ["checking", "stopping", "version"] + ScriptHost.submodules.map(\.name)
    #expect(Set(reader.members(of: "module", methodsOnly: false)).subtracting(all).isEmpty)
  }

  @Test("Every function of a submodule has a text, and every text a function")
  func submodules() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    let reader = AnnotationReader()
    for each in ScriptHost.submodules {
      let table = try #require(try host.submodule(ByteString(each.name)))
      let names = try host.vm.pairs(of: table).compactMap { pair -> String? in
        guard case .string(let name) = pair.key else { return nil }
        return name.description
      }
      #expect(names.sorted() == reader.members(of: each.name, methodsOnly: false), "\(each.name)")
      for name in names {
        let lines = reader.text(name, of: each.name)?.split(separator: "\n") ?? []
        #expect(lines.count >= 2, "\(each.name).\(name) has no text")
      }
      #expect(Annotations.files.contains { $0.name == "flow.\(each.name).d.lua" })
    }
  }

  @Test("Every method of the objects has a text, and every text a method")
  func methods() {
    let reader = AnnotationReader()
    let methods: [(String, [String])] = [
      ("op", Array(OpBindings.methods.names)), ("flow", Array(FlowBindings.methods.names)),
      ("machine", Array(MachineBindings.methods.names)),
      ("run", Array(RunBindings.methods.names)),
      ("task", Array(TaskBindings.methods(of: "task").names)),
      ("ctx", Array(ContextBindings.methods.names)),
      ("context", Array(TaskContextBindings.methods.names)),
      ("dispatcher", []), ("secret", []), ("step", []), ("handler", []), ("ops", []),
    ]
    for (kind, names) in methods {
      #expect(reader.members(of: kind, methodsOnly: true) == names.sorted(), "\(kind)")
      for name in names {
        #expect(reader.text(name, of: kind)?.contains("\n") == true, "\(kind):\(name)")
      }
      #expect(reader.text(ofClass: kind)?.isEmpty == false, "\(kind)")
    }
  }

  @Test("The metatables of running objects have the methods that their texts name, and no other")
  func runningObjects() throws {
    let program = try ScriptProgram()
    let found = try program.text(
      """
      local ctx
      local op = flow.op("AnOp", function(c) ctx = c end)
      local run = op:run()
      local lines = {}
      for _, object in ipairs {
        ctx, flow.context(), flow.dispatcher { input = "x" }, flow.new("f"), flow.next(flow.stay()),
        flow.machine { name = "m", start = "a", flow.step("a", { run = print }) }, op, flow.ops, run,
        flow.secret "s", flow.any_step {}, flow.resolved(1),
      } do
        local metatable, names = debug.getmetatable(object), {}
        local methods = metatable.__index
        -- With fields it is a function, which looks into the methods first.
        if type(methods) == "function" then methods = select(2, debug.getupvalue(methods, 1)) end
        for name in pairs(methods or {}) do names[#names + 1] = name end
        table.sort(names)
        lines[#lines + 1] = metatable.__name .. ": " .. table.concat(names, " ")
      end
      return table.concat(lines, "\\n")
      """)
    let reader = AnnotationReader()
    let kinds = [
      "ctx", "context", "dispatcher", "flow", "handler", "machine", "op", "ops", "run", "secret",
      "step", "task",
    ]
    let wanted = kinds.map { kind in
      "\(kind): " + reader.members(of: kind, methodsOnly: true).joined(separator: " ")
    }
    #expect(found == wanted.joined(separator: "\n"))
  }

  @Test("Help about an op says how much memory it may allocate")
  func memory() throws {
    let program = try ScriptProgram()
    let made = try program.run(
      """
      return flow.op("LimitedOp", { thread = "worker", memory = "64M", timeout = 2, run = function() end })
      """)
    let text = program.host.help(about: made.first).description
    #expect(text.contains("timeout: 2s\nmemory: 64M\n"))
  }

  @Test("A program has the methods of a task and its own")
  func programs() throws {
    let program = try ScriptProgram()
    let host = program.host
    let task = ProcessTask(ProcessRequest(["true"]), on: host.loop)
    let value = try host.value(of: task)
    let names = try #require(host.members(of: value, methodsOnly: true))
    #expect(Set(["lines", "write", "close_stdin", "await"]).isSubset(of: names))
    let methods = try ProgramMethods.of(host).methods.keys.map(\.description)
    let plain = AnnotationReader().members(of: "task", methodsOnly: true)
    #expect(Set(names).subtracting(plain) == Set(methods))
    #expect(host.help(about: value).description.contains("lines"))
    task.cancel()
    task.markObserved()
    host.loop.runUntilIdle()
  }

  @Test("Every field that a text names exists")
  func fields() throws {
    let program = try ScriptProgram()
    let reader = AnnotationReader()
    var names: [LuaValue] = []
    for kind in ["op", "run", "task", "ctx", "context", "error", "transition", "ops"] {
      let methods = reader.members(of: kind, methodsOnly: true)
      for name in reader.members(of: kind, methodsOnly: false) where !methods.contains(name) {
        names.append(.string(ByteString("\(kind).\(name)")))
      }
    }
    #expect(names.count > 40)
    try program.vm.setGlobal("names", .reference(try program.vm.makeTable(values: names)))
    let refused = Op("RefusedOp") { _ in
      throw FlowError.http("no", .init(status: 503), mayRepeat: false)
    }
    let lost = Op("LostOp") { _ in
      throw FlowError.network("no", phase: .send, sent: true, mayRepeat: false)
    }
    let unknown = try program.text(
      """
      local RefusedOp, LostOp = ...
      local seen = {}
      local function look(kind, ...)
        for _, object in ipairs { ... } do
          for _, full in ipairs(names) do
            local field = full:match("^" .. kind .. "%.(.*)$")
            if field and object[field] ~= nil then seen[full] = true end
          end
        end
      end
      local ItemOp = flow.op("ItemOp", { doc = "d", needs = { n = "integer" }, run = function(ctx)
        look("ctx", ctx)
      end })
      local policy = { gives = { m = "any" }, retry = 2, timeout = 1, grace = 1, run = print }
      local LimitedOp = flow.op("LimitedOp", { thread = "worker", memory = "64M", run = function() end })
      local RemoteOp = flow.op("RemoteOp", { thread = "remote", tags = "gpu", run = function() end })
      local HeldOp = flow.op("HeldOp", { limit = flow.limit("db", 1), run = function() end })
      look("op", ItemOp, flow.op("PolicyOp", policy), LimitedOp, RemoteOp, HeldOp)
      local good = flow.new("good"):add_grouped(ItemOp, { input = "ns" }):run { ns = { 1 } }
      local bad = flow.op("BadOp", function() error({}) end):run()
      local exec = flow.exec({ "sh", "-c", "kill -9 $$" })
      exec:wait()
      local function show(_, ctx) look("ctx", ctx) end
      local walk = flow.machine { name = "m", start = "a", flow.step("a", { run = show }) }:run()
      look("run", good, bad, walk, flow.when_any_finish { good })
      look("task", good, bad, flow.when_any_finish { good })
      look("context", flow.context())
      flow.op("TidyOp", function(ctx)
        ctx:defer(function() look("ctx", ctx) end)
        ctx:fail "bad"
      end):run()
      local late = flow.op("LateOp", { timeout = 1, run = function() flow.sleep(9) end }):run()
      local final = flow.op("FinalOp", function(ctx) ctx:fail("no", { retry = false, retry_after = 1 }) end):run()
      local near = flow.op("NearOp", function(ctx) ctx:get "nam" end):run { name = 1 }
      local _, absent = pcall(flow.fs.read, "/no such file")
      look("error", bad.error, exec.error, late.error, final.error, near.error, absent)
      look("error", RefusedOp:run().error, LostOp:run().error)
      look("error", select(2, pcall(function() flow.when_any_succeeds { bad }:await() end)))
      look("transition", flow.forward "x")
      look("ops", flow.ops)
      local missing = {}
      for _, full in ipairs(names) do
        if not seen[full] then missing[#missing + 1] = full end
      end
      return table.concat(missing, " ")
      """, program.host.value(of: refused), program.host.value(of: lost))
    // A run is no join, though it is a task.
    #expect(unknown == "")
  }

  @Test("Exactly the built-in ops have a text")
  func builtInOps() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    #expect(
      AnnotationReader().members(of: "ops", methodsOnly: false)
        == host.registry.names.map(\.description))
  }

  @Test("The help of a function lists the fields of its options")
  func options() throws {
    let text = try #require(AnnotationReader().text("exec", of: "module"))
    #expect(text.hasPrefix("flow.exec(argv, options)\nRuns a program"))
    #expect(text.contains("\n    cwd: string Its working directory"))
    let retry = try #require(AnnotationReader().text(ofClass: "retryoptions"))
    #expect(retry.contains("\n    jitter: number "))
    let kinds = try #require(AnnotationReader().text(ofClass: "errorkind"))
    #expect(kinds.contains("\n  \"stalled\" # "))
  }

  @Test("Help describes values, names and itself")
  func help() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    #expect(host.help(about: nil).description.contains("help(x)"))
    let sleep = try host.vm.get("sleep", in: host.module)
    #expect(host.help(about: sleep).description.hasPrefix("flow.sleep(seconds)\nWaits;"))
    #expect(host.help(about: .string("flow.sleep")) == host.help(about: sleep))
    #expect(host.help(about: .reference(host.module)).description.contains("flow.when_any_finish"))
    #expect(host.help(about: .string("nonsense")).description.contains("no help"))
    #expect(host.help(about: .integer(1)).description.contains("no help"))
    let op = Op("GreetOp", doc: "Greets.", needs: ["name": "string"]) { _ in }.with(
      timeout: .seconds(2))
    #expect(
      host.help(about: try host.value(of: op)).description
        == "op GreetOp\nGreets.\nneeds:\n  name: string\ntimeout: 2s\n")
  }

  @Test("Every function of Lua's libraries has a text, and every text a function")
  func standardLibraries() throws {
    let program = try ScriptProgram()
    let found = try program.text(
      """
      local names = {}
      for name, value in pairs(_G) do
        if type(value) == "function" then names[#names + 1] = name end
        if type(value) == "table" and package.loaded[name] == value and name ~= "_G" then
          for inner, f in pairs(value) do
            if type(f) == "function" then names[#names + 1] = name .. "." .. inner end
          end
        end
      end
      for name in pairs(getmetatable(io.stdout).__index) do names[#names + 1] = "file:" .. name end
      table.sort(names)
      return table.concat(names, "\\n")
      """)
    #expect(found == StandardLibraryHelp.names.sorted().joined(separator: "\n"))
    for name in StandardLibraryHelp.names {
      #expect(StandardLibraryHelp.text(of: name)?.contains("\n") == true, "\(name)")
    }
    let host = program.host
    let print = try host.vm.global("print")
    #expect(host.help(about: print).description.hasPrefix("print(...)\nWrites its arguments"))
    #expect(host.help(about: .string("string.rep")).description.contains("n copies"))
    #expect(host.help(about: .string("file:read")).description.contains("Reads by formats"))
    #expect(host.help(about: try host.vm.global("math")).description.contains("math.abs(x)  –  "))
  }

  @Test("Help is as wide as the terminal, has whole sentences, and suggests what was meant")
  func layout() throws {
    let program = try ScriptProgram()
    let host = program.host
    for columns in [40, 80, 120] {
      for about: LuaValue in [.string("flow.exec"), .reference(host.module), .string("string")] {
        let lines = host.help(about: about, columns: columns).description.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= columns }, "\(columns)")
      }
    }
    let wide = host.help(about: .string("flow.exec"), columns: 1000).description
    #expect(wide.split(separator: "\n")[1].hasSuffix("the last line of `stderr`."))
    let members = host.help(about: .reference(host.module), columns: 1000).description
    #expect(
      members.contains("\n  flow.sleep(seconds)  –  Waits; everything else continues.\n"))
    #expect(
      members.contains(
        "flow.when_all_succeed(tasks)  –  Succeeds with the list of results, in order,"))
    func hint(_ name: LuaValue) -> String { host.help(about: name).description }
    #expect(hint("flow.slep").contains("did you mean 'flow.sleep'?"))
    #expect(hint("strng.rep").contains("did you mean 'string.rep'?"))
    #expect(hint("run:sumary").contains("did you mean 'run:summary'?"))
    #expect(!hint("nonsense").contains("did you mean"))
    #expect(hint(.integer(1)).contains("about an integer value"))
    #expect(hint(.number(1)).contains("about a float value"))
  }

  @Test("Completion knows options and results of calls")
  func completion() throws {
    let program = try ScriptProgram()
    let locals = try SessionLocals(program.vm)
    func names(_ before: String) -> [String] {
      NameCompletion(program.host, locals, before: Array(before.utf8)).names()
        .map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(names("flow.op('x', { time") == ["timeout"])
    #expect(names("flow.op('x', { timeout = 5, ").contains("retry"))
    #expect(!names("flow.op('x', { timeout = 5, ").contains("timeout"))
    #expect(Set(names("flow.op('x', { retry = {")).isSuperset(of: ["attempts", "jitter"]))
    #expect(names("flow.new('f'):add_grouped(Op, { max") == ["max_concurrent"])
    #expect(names("flow.new 'f' :add(Op(1, 2), { th") == ["thread"])
    #expect(names("flow.machine { na") == ["name", "navigate"])
    #expect(names("flow.exec({ 'ls' }, { c").contains("cwd"))
    #expect(names("flow.op('x', { needs = { k = 'string' }, run = function(c) pri") == ["print"])
    #expect(names("flow.op('x', { run = pri").contains("print"))
    #expect(names("flow.new('f'):add(x):add_f") == ["add_finally"])
    #expect(names("flow.new('f'):start():summ") == ["summary"])
    #expect(names("flow.spawn(print):next(print):aw") == ["await"])
    #expect(names("flow.op('x', print):run().finished") == ["finished_early"])
    #expect(names("unknown():x") == [])
    _ = try program.vm.callSessionChunk(
      try locals.load(Array("local variable = { field = flow.new 'f' }".utf8), chunkName: "=stdin"))
    #expect(names("vari") == ["variable"])
    #expect(names("variable.fie") == ["field"])
    #expect(names("x = 1\nvariable.field:add(1)\n  :add_p") == ["add_parallel"])
  }
}
