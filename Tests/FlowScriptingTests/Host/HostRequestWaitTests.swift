import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// Requests whose code waits where it can't be parked: below a C function, and in texts.
@Suite("Waits in place of requests")
struct HostRequestWaitTests {
  private static let code = """
    local flow = require "flow"
    waits = {}
    local function text()
      return setmetatable({}, { __tostring = function()
        attend()
        waits[#waits + 1] = tostring(pcall(flow.sleep, 1))
        return "text"
      end })
    end
    TextOp = flow.op("TextOp", function(ctx)
      ctx:set("first", text())
      ctx:set("second", text())
    end)
    InPlaceOp = flow.op("InPlaceOp", function(ctx)
      table.sort({ 2, 1 }, function(a, b) flow.sleep(1) return a < b end)
      ctx:set("done", true)
    end)
    LongOp = flow.op("LongOp", function(ctx)
      owner = "host"
      flow.sleep(100)
      ctx:set("done", true)
    end)
    """

  private func thread() async throws -> ScriptThread {
    try await ScriptThread(permissions: .restricted, virtualClock: true) { host in
      let attend = try host.vm.makeFunction("attend") { [unowned host] in
        host.vm.attention.call()
      }
      try host.vm.setGlobal("attend", .reference(attend))
      try host.vm.call(host.vm.load(Self.code, name: "waits.lua"), as: Void.self)
    }
  }

  @Test("A text waits also if another thread needs the attention of the state")
  func texts() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let op = try host.op(named: "TextOp")
      _ = try await host.run(op)
      let waits = try host.vm.call(
        host.vm.load("return table.concat(waits, ' ')", name: "x"), as: String.self)
      #expect(waits.hasPrefix("true true"), "\(waits)")
      #expect(!waits.contains("false"), "\(waits)")
      #expect(!host.vm.refusesTextWaits)
    }
    await scripts.shutdown()
  }

  @Test("Texts that a signal has refused to let wait may wait in the next code of a session")
  func session() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      host.vm.refuseTextWaits()
      host.beginChunk()
      #expect(!host.vm.refusesTextWaits)
      host.endChunk()
    }
    await scripts.shutdown()
  }

  @Test("A run that other Swift code starts while a request waits in place isn't the request's")
  func otherRuns() async throws {
    let scripts = try await thread()
    try await scripts.perform { host in
      let other = host.loop.task {
        _ = try await SleepOp(.milliseconds(500)).start(on: host.loop).value
        return try await host.op(named: "LongOp").start(on: host.loop).value.boolean("done")
      }
      let request = host.loop.task {
        try await host.run(host.op(named: "InPlaceOp"), isolatesGlobals: true).boolean("done")
      }
      #expect(try await request.value == true)
      #expect(try await other.value == true)
      let owner = try host.vm.call(
        host.vm.load("return tostring(owner)", name: "x"), as: String.self)
      #expect(owner == "host")
    }
    await scripts.shutdown()
  }
}
