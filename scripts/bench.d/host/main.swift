// Runs a script with a mechanism or without it, so that scripts/bench can tell what the mechanism gains.
//
//   BenchHost MECHANISM|none SCRIPT [ARGUMENT...]
import FlowEngine
import FlowScripting
import LuaVM

let mechanisms: [String: LuaMechanisms] = [
  "none": [], "tables": .tableLayout, "frames": .frameLayout, "freed": .freedObjects,
  "pool": .blockPool,
]
let words = Array(CommandLine.arguments.dropFirst())
guard words.count >= 2, let withheld = mechanisms[words[0]] else {
  fatalError("usage: BenchHost MECHANISM|none SCRIPT [ARGUMENT...]")
}
var configuration = LuaConfiguration()
configuration.withheld = withheld
let host = try ScriptHost(vm: LuaVM(configuration: configuration))
defer { host.close() }
let arguments = words.dropFirst(2).map { LuaValue.string(ByteString($0)) }
_ = try host.vm.call(host.vm.load("arg = { ... }", name: "arguments"), arguments)
_ = try host.vm.call(host.vm.loadFile(words[1]))
host.runToEnd()
