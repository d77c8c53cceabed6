import FlowEngine
import Glibc
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// A Swift program that runs scripts: a state, a host and a clock that jumps.
final class ScriptProgram {
  let host: ScriptHost
  var vm: LuaVM { host.vm }
  var loop: FlowEventLoop { host.loop }

  init(_ state: LuaConfiguration = LuaConfiguration()) throws {
    host = try ScriptHost(
      vm: LuaVM(configuration: state), loop: FlowEventLoop(clock: VirtualClock()))
    try vm.setGlobal("flow", .reference(host.module))
  }

  deinit {
    host.close()
    host.loop.shutdown()
  }

  /// Runs a chunk, `script.lua` by name, as the main chunk of a script.
  @discardableResult
  func run(_ source: String, _ arguments: LuaValue...) throws -> [LuaValue] {
    try vm.call(try load(source), arguments)
  }

  func load(_ source: String) throws -> LuaReference {
    try vm.load(ByteString(source), name: "script.lua")
  }

  /// The run, which has ended, of the op that a chunk returns.
  func endedRun(_ source: String, data: InitialData = [:]) throws -> Run {
    let op = try #require(try run(source).first.flatMap { host.op(in: $0) })
    let run = op.start(on: loop, data: data)
    try run.waitUntilEnd()
    return run
  }

  /// The first result of a chunk, as `tostring` shows it.
  func text(_ source: String, _ arguments: LuaValue...) throws -> String {
    let results = try vm.call(try load(source), arguments)
    return try vm.tostring(results.first ?? .nil).description
  }

  /// Collects until nothing is left to free: a finalizer may release objects for the next round.
  func collect() throws {
    for _ in 0..<4 { try vm.collectGarbage() }
  }
}

/// The thread sanitizer makes most things a hundred times slower.
let isThreadSanitized = dlsym(nil, "__tsan_init") != nil
