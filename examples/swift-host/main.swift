// A program that embeds flowlua: it registers two op classes, runs a script against them, and prints
// what has come of it.
//
//   swift run SwiftHost
import FlowEngine
import FlowScripting
import LuaVM

/// Runs a script that returns a run; returns that run once it has ended.
func run(_ path: String, on host: ScriptHost) throws -> Run? {
  let script = try host.vm.loadFile(path)
  let results = try host.vm.call(script)
  // The script and all that it has started run here.
  host.runToEnd()
  return results.first.flatMap { host.startedRun(in: $0) }
}

let shop = Shop()
let host = try ScriptHost(vm: LuaVM())
defer { host.close() }

host.register(StockOp(shop: shop))
host.register(
  OpClass("ReserveOp", doc: "Reserves an article for somebody.") { arguments in
    ReserveOp(shop: shop, customer: try arguments.string(1).description)
  })

do {
  let path = CommandLine.arguments.dropFirst().first ?? "examples/swift-host/order.lua"
  if let run = try run(path, on: host) {
    print(run.summary(), terminator: "")
    let reservations = run.data.value("reservations", as: [String].self) ?? []
    print(reservations.joined(separator: "\n"))
    if let error = run.error { print("failed: \(error)") }
  } else {
    print("\(path) returned no run")
  }
} catch {
  print("error: \(error)")
}
