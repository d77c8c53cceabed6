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
    // And no text is about a name that there isn't.
    #expect(Set(reader.members(of: "module", methodsOnly: false)).subtracting(names).isEmpty)
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
    ]
    for (kind, names) in methods {
      #expect(reader.members(of: kind, methodsOnly: true) == names.sorted(), "\(kind)")
      for name in names {
        #expect(reader.text(name, of: kind)?.contains("\n") == true, "\(kind):\(name)")
      }
    }
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
