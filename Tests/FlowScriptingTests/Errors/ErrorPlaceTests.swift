import FlowEngine
import FlowScripting
import Foundation
@_spi(Scripting) import LuaVM
import Testing

@Suite("Places of errors in scripts")
struct ErrorPlaceTests {
  private struct Refusal: Error {}
  private final class Basket: LuaObject {}

  private static let failing: [(script: String, place: String)] = [
    ("\nlocal x\nreturn x.y", "acme.lua:3"),
    ("\nerror { code = 402 }", "acme.lua:2"),
    ("\nerror(nil)", "acme.lua:2"),
    ("local function check() error('no', 2) end\n\ncheck()", "acme.lua:3"),
    ("\nerror('no place', 0)", "acme.lua:2"),
    ("\nlocal flow = require 'flow'\nflow.sleep('x')", "acme.lua:3"),
    (
      "\nlocal flow = require 'flow'\nflow.op('NeedOp', { needs = { a = 'string' }, run = print })\n:run():await()",
      "acme.lua:3"
    ),
    ("\n\nwhile true do end", "acme.lua:3"),
    ("\nlocal flow = require 'flow' flow.sleep(1e6)", "acme.lua:2"),
    ("\nlocal b = Basket()\nb:refuse()", "acme.lua:3"),
    ("\nlocal b = Basket()\nb:refuseLate()", "acme.lua:3"),
    ("\nrefuse()", "acme.lua:2"),
    ("\n\nlocal x = = 3", "acme.lua:3:11"),
    ("local t = {\n  a = 1\n  b = 2 }", "acme.lua:3:3"),
    ("x = 'open\ny = 1", "acme.lua:1:5"),
    ("local a = 1\nif a then", "acme.lua:2:10"),
    ("local x = 3x", "acme.lua:1:11"),
    ("return\u{1}", "acme.lua:1:7"),
    ("goto nowhere", "acme.lua:1"),
  ]

  @Test(
    "Errors of all kinds have the file and line of the script, and syntax errors the column",
    arguments: failing)
  func places(_ script: String, _ place: String) async throws {
    let error = await #expect(throws: FlowError.self) {
      try await ScriptHost.run(
        script: .text(script, name: "acme.lua"), timeLimit: .milliseconds(200),
        memoryLimit: 16 << 20
      ) { host in
        try host.vm.define(
          LuaClass<Basket>("Basket") {
            $0.initializer { Basket() }
            $0.method("refuse") { (_) throws -> Int in throw Refusal() }
            $0.asyncMethod("refuseLate") { (_) async throws -> Int in
              await Task.yield()
              throw Refusal()
            }
          })
        let refuse = try host.vm.makeFunction("refuse") { () throws -> Int in
          throw FlowError(.error, "refused")
        }
        try host.vm.setGlobal("refuse", .reference(refuse))
      }
    }
    #expect(error?.place?.description == place, "\(error as Any)")
  }

  @Test("The text of an error that Swift code threw says where")
  func texts() throws {
    let program = try ScriptProgram()
    let refuse = try program.vm.makeFunction("refuse") { () throws -> Int in throw Refusal() }
    try program.vm.setGlobal("refuse", .reference(refuse))
    let run = try program.endedRun("return flow.op('RuleOp', function()\nrefuse() end)")
    #expect(
      run.error?.description == "[RuleOp] Refusal() (at script.lua:2, in refuse)"
        && run.error?.underlying is Refusal)
  }

  @Test("The column of a syntax error in a file counts from the beginning of its line")
  func files() throws {
    let host = try ScriptProgram()
    let path = FileManager.default.temporaryDirectory.appending(
      path: "rule-\(UUID().uuidString).lua")
    defer { try? FileManager.default.removeItem(at: path) }
    for (text, column) in [
      ("#!/usr/bin/lua\nlocal x = = 3", 11), ("\u{FEFF}x = = 3", 5), ("x =", 4),
    ] {
      try Data(text.utf8).write(to: path)
      let error = #expect(throws: LuaError.self) { try host.vm.loadFile(path.path()) }
      #expect(error?.column == column, "\(text)")
    }
  }

  @Test(
    "Errors of engine and Swift outside of scripts have no place, whatever their texts look like")
  func none() throws {
    #expect(FlowError(.error, "call.lua:10: late").place == nil)
    let run = Op("SwiftOp") { _ in throw FlowError(.error, "call.lua:10: late") }.start(
      on: FlowEventLoop(clock: VirtualClock()))
    #expect(run.error != nil && run.error?.place == nil)
  }

  @Test(
    "A mapper decides what scripts, logs and callers see of a thrown error, and nothing else passes through it"
  )
  func mapping() throws {
    let program = try ScriptProgram()
    program.loop.errorMapper = { error in
      FlowError(.error, "internal error (\(error is Refusal ? "refusal" : "other"))", code: 500)
    }
    let host = program.host
    for (name, function) in [
      ("refuse", try host.vm.makeFunction("refuse") { () throws -> Int in throw Refusal() }),
      (
        "refuseLate",
        try host.makeAsyncFunction("refuseLate") { () async throws -> Int in
          await Task.yield()
          throw Refusal()
        }
      ),
      (
        "explain",
        try host.vm.makeFunction("explain") { () throws -> Int in throw FlowError(.usage, "no tea")
        }
      ),
    ] {
      try host.vm.setGlobal(name, .reference(function))
    }
    host.register(Op("RefuseOp") { _ in throw Refusal() })
    host.register(Op("LateOp") { (_) async throws in throw Refusal() })
    let text = try program.text(
      """
      local texts = {}
      for _, name in ipairs { "refuse", "refuseLate", "explain" } do
        local _, e = pcall(_G[name])
        texts[#texts + 1] = tostring(e)
      end
      for _, name in ipairs { "RefuseOp", "LateOp" } do
        texts[#texts + 1] = flow.ops[name]:run().error.message
      end
      texts[#texts + 1] = select(2, pcall(error, "own"))
      return table.concat(texts, "; ")
      """)
    let mapped = "internal error (refusal)"
    #expect(text == "\(mapped); \(mapped); no tea; \(mapped); \(mapped); own")
    let run = try program.endedRun("return flow.op('RuleOp', function() refuse() end)")
    #expect(run.error?.code == 500 && run.error?.underlying is Refusal)
  }

  private struct Verdict: Decodable { let score: Double }

  // The program belongs to this thread: async code may leave it.
  private func errorOfData() throws -> FlowError? {
    let run = try ScriptProgram().endedRun(
      "return flow.op('SetOp', function(ctx) ctx:set('score', 'x') end)")
    return #expect(throws: FlowError.self) { try run.data.decoded(as: Verdict.self) }
  }

  @Test("Data and results that can't be decoded give equal errors")
  func decoding() async throws {
    let ofData = try errorOfData()
    let result = try await ScriptHost.run(script: "return { score = 'x' }")
    let ofResult = #expect(throws: FlowError.self) { try result.value(as: Verdict.self) }
    #expect(ofData?.kind == .mismatchedOutput && ofResult?.kind == .mismatchedOutput)
    #expect(ofData?.underlying is DecodingError && ofResult?.underlying is DecodingError)
  }
}
