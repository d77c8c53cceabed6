import FlowEngine
import LuaVM
import Testing

@testable import FlowScripting

@Suite("What help and completion know")
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
      let lines = reader.text(name, of: AnnotationReader.module)?.split(separator: "\n") ?? []
      #expect(lines.count >= 2, "flow.\(name) has no text")
    }
    // And no text is about a name that there isn't. One is looked up when it is read.
    let all = names + ["checking"]
    #expect(Set(reader.members(of: "module", methodsOnly: false)).subtracting(all).isEmpty)
  }

  @Test("Every method of the objects has a text, and the texts are about methods that there are")
  func methods() {
    let reader = AnnotationReader()
    let methods: [(String, [String])] = [
      ("op", Array(ScriptHost.opMethods.names)), ("flow", Array(ScriptHost.flowMethods.names)),
      ("machine", Array(ScriptHost.machineMethods.names)),
      ("run", Array(ScriptHost.runMethods.names)),
      ("task", Array(ScriptHost.taskMethods(of: "task").names)),
      ("ctx", Array(ScriptHost.contextMethods.names)),
      ("context", Array(ScriptHost.taskContextMethods.names)),
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

  @Test("Every field that a text names is one that an object of its kind has")
  func fields() throws {
    let program = try ScriptProgram()
    let reader = AnnotationReader()
    var names: [LuaValue] = []
    for kind in ["op", "run", "task", "ctx", "context", "error", "transition", "ops"] {
      let methods = reader.members(of: kind, methodsOnly: true)
      for name in reader.members(of: kind, methodsOnly: false) where !methods.contains(name) {
        names.append(.string(LuaString("\(kind).\(name)")))
      }
    }
    #expect(names.count > 40)
    try program.vm.setGlobal("names", .reference(try program.vm.makeTable(values: names)))
    let unknown = try program.text(
      """
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
      look("op", ItemOp, flow.op("PolicyOp", policy))
      local good = flow.new("good"):add_grouped(ItemOp, { input = "ns" }):run { ns = { 1 } }
      local bad = flow.op("BadOp", function() error({}) end):run()
      local exec = flow.exec({ "sh", "-c", "kill -9 $$" })
      exec:wait()
      look("run", good, bad, flow.when_any_finish { good })
      look("task", good, bad, flow.when_any_finish { good })
      look("context", flow.context())
      look("error", bad.error, exec.error)
      look("transition", flow.forward "x")
      look("ops", flow.ops)
      local missing = {}
      for _, full in ipairs(names) do
        if not seen[full] then missing[#missing + 1] = full end
      end
      return table.concat(missing, " ")
      """)
    // A run is no join, though it is a task.
    #expect(unknown == "")
  }

  @Test("The ops that flowlua brings along have a text each, and no other has")
  func builtInOps() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    #expect(
      AnnotationReader().members(of: "ops", methodsOnly: false)
        == host.registry.names.map(\.description))
  }

  @Test("What is told of a function has the fields of its options")
  func options() throws {
    let text = try #require(AnnotationReader().text("exec", of: "module"))
    #expect(text.hasPrefix("flow.exec(argv, options)\nRuns a program"))
    #expect(text.contains("\n    cwd: string Its working directory"))
    let retry = try #require(AnnotationReader().text(ofClass: "retryoptions"))
    #expect(retry.contains("\n    jitter: number "))
    let kinds = try #require(AnnotationReader().text(ofClass: "errorkind"))
    #expect(kinds.contains("\n  \"stalled\" # "))
  }

  @Test("Help is about values, names and itself")
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
    let op = Op("GreetOp", doc: "Greets.", needs: ["name": "string"], timeout: 2) { _ in }
    #expect(
      host.help(about: try host.value(of: op)).description
        == "op GreetOp\nGreets.\nneeds:\n  name: string\ntimeout: 2s\n")
  }
}
