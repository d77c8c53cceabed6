import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Async functions for scripts")
struct AsyncFunctionTests {
  private final class Store: LuaObject {
    let loop: FlowEventLoop
    var log: [String] = []

    init(_ loop: FlowEventLoop) {
      self.loop = loop
    }

    nonisolated(nonsending) func load(_ id: Int) async throws -> String {
      log.append("begin \(id)")
      do {
        try await loop.sleep(for: .seconds(id))
      } catch {
        log.append("cancelled \(id)")
        throw error
      }
      log.append("end \(id)")
      return "item \(id)"
    }
  }

  private struct Missing: Error, CustomStringConvertible {
    var description: String { "nothing there" }
  }

  /// A program whose scripts have the functions.
  private func program() throws -> (ScriptProgram, Store) {
    let program = try ScriptProgram()
    let store = Store(program.loop)
    let vm = program.vm
    try vm.setGlobal(
      "load",
      .reference(
        program.host.makeAsyncFunction("load") { (id: Int) in
          LuaResults(try await store.load(id), id)
        }))
    try vm.setGlobal(
      "fail",
      .reference(
        program.host.makeAsyncFunction("fail") { (waits: Bool) -> Void in
          if waits { await Task.yield() }
          throw Missing()
        }))
    try vm.define(
      LuaClass<Store>("Store") {
        $0.asyncMethod("load") { (store, id: Int) in try await store.load(id) }
        $0.asyncMethod("touch") { (store) in store.log.append("touched") }
      })
    try vm.setGlobal("store", try store.luaValue(in: vm))
    return (program, store)
  }

  @Test("The script waits for the result while its other code continues")
  func results() throws {
    let (program, store) = try program()
    let value = try program.run(
      """
      local FirstOp = flow.op("FirstOp", function(ctx) ctx:set("a", (load(2))) end)
      local SecondOp = flow.op("SecondOp", function(ctx) ctx:set("b", store:load(1)) store:touch() end)
      return FirstOp:start(), SecondOp:start()
      """)
    let runs = value.compactMap { program.host.startedRun(in: $0) }
    for run in runs { try run.wait() }
    #expect(runs.first?.data.string("a") == "item 2")
    #expect(runs.last?.data.string("b") == "item 1")
    #expect(runs.first?.duration == .seconds(2))
    #expect(store.log == ["begin 2", "begin 1", "end 1", "touched", "end 2"])
  }

  @Test("Where the script can't be parked, the loop runs in place")
  func inPlace() throws {
    let (program, _) = try program()
    #expect(try program.text("return table.concat({ load(1) }, ' ')") == "item 1 1")
    #expect(
      try program.text("return (('x'):gsub('x', function() return store:load(1) end))") == "item 1")
  }

  @Test(
    "A Swift error becomes an error table, whose cause Swift still has", arguments: [true, false])
  func failures(waits: Bool) throws {
    let (program, _) = try program()
    #expect(
      try program.text(
        "local ok, e = pcall(fail, ...) return e.kind .. ': ' .. e.message", .boolean(waits))
        == "error: nothing there")
    let value = try program.run(
      "local waits = ... return flow.op('FailOp', function() fail(waits) end):start()",
      .boolean(waits))
    let run = try #require(program.host.startedRun(in: value[0]))
    try run.waitUntilEnd()
    #expect(run.error?.underlying is Missing)
    #expect(program.host.unobservedFailures().map(\.name) == ["FailOp"])
  }

  @Test("Stopping the waiting code cancels the closure")
  func cancellation() throws {
    let (program, store) = try program()
    let value = try program.run(
      """
      local LoadOp = flow.op("LoadOp", function() store:load(100) end)
      local run = LoadOp:start()
      flow.sleep(1)
      run:cancel()
      return run
      """)
    let run = try #require(program.host.startedRun(in: value[0]))
    program.host.runToEnd()
    #expect(run.state == .cancelled)
    #expect(store.log == ["begin 100", "cancelled 100"])
    let timed = try program.run(
      """
      return flow.op("SlowOp", function() load(50) end):with { timeout = 3 }:start()
      """)
    let slow = try #require(program.host.startedRun(in: timed[0]))
    program.host.runToEnd()
    #expect(slow.error?.kind == .timeout)
    #expect(store.log.suffix(2) == ["begin 50", "cancelled 50"])
  }

  @Test("Wrong arguments are errors at the script's line")
  func arguments() throws {
    let (program, store) = try program()
    #expect(
      try program.text("return select(2, pcall(function() load 'x' end))")
        == "script.lua:1: bad argument #1 to 'load' (integer expected, got string)")
    #expect(
      try program.text("return select(2, pcall(function() store.load(1, 2) end))")
        == "script.lua:1: calling 'Store:load' on bad self (Store expected, got 1)")
    #expect(store.log.isEmpty)
  }

  @Test("A host that closes drops a closure that waits")
  func closing() throws {
    let (program, store) = try program()
    try program.run("flow.op('LoadOp', function() store:load(100) end):start()")
    program.host.close()
    program.loop.shutdown()
    #expect(store.log.first == "begin 100")
    #expect(!store.log.contains("end 100"))
  }
}
