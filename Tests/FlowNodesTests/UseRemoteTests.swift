import FlowEngine
import FlowNodes
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("A server of NATS that a Swift program names")
struct UseRemoteTests {
  /// The error of an op that needs another node.
  private func message(in host: ScriptHost) throws -> String {
    let chunk = try host.vm.load(Self.script, name: "script")
    let results = try host.call(chunk, deadline: .now.advanced(by: .seconds(3600)))
    return try host.vm.tostring(results.first ?? .nil).description
  }

  private static let script = """
    local flow = require "flow"
    local Op = flow.op("FarOp", { thread = "remote", run = function() end })
    return Op:run().error.message
    """

  @Test("Its servers get the ops of a script")
  func used() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    // Nothing listens on this port.
    try host.useRemote("nats://127.0.0.1:1", timeout: .milliseconds(1))
    let message = try message(in: host)
    #expect(message.contains("127.0.0.1:1"), "\(message)")
  }

  @Test("What can't be used is refused, and nothing changes")
  func refused() throws {
    let host = try ScriptHost(vm: LuaVM())
    defer { host.close() }
    func problem(_ body: () throws(FlowError) -> Void) -> ByteString {
      do throws(FlowError) {
        try body()
        return ""
      } catch {
        return error.message
      }
    }
    #expect(problem { () throws(FlowError) in try host.useRemote("http://x") }.contains("nats://"))
    #expect(
      problem { () throws(FlowError) in try host.useRemote("nats://10.0.0.7") }
        .contains("isn't encrypted"))
    // A name, which may belong to any node.
    #expect(
      problem { () throws(FlowError) in try host.useRemote("nats://127.example.invalid") }
        .contains("isn't encrypted"))
    #expect(
      problem { () throws(FlowError) in
        try host.useRemote("nats://127.0.0.1:1", shared: ["data"])
      }.contains("an absolute path"))
    #expect(
      problem { () throws(FlowError) in try host.useRemote("nats://127.0.0.1:1", key: "short") }
        .contains("FLOWLUA_REMOTE_KEY"))
    let message = try message(in: host)
    #expect(message.contains("no server of NATS is known"), "\(message)")
  }
}
