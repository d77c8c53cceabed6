import FlowEngine
import FlowScripting
import Glibc
import LuaVM
import Testing

/// A server's day: hosts that come and go. Each test has a process of its own, whose memory it measures.
@Suite("Many hosts")
struct ManyHostsTests {
  /// How many hosts: as many as usual, unless `FLOWLUA_HOSTS` says otherwise.
  static var count: Int {
    getenv("FLOWLUA_HOSTS").flatMap { Int(String(cString: $0)) } ?? 300
  }

  static let script = """
    local flow = require "flow"
    local DoubleOp = flow.op("DoubleOp", { needs = { n = "integer" }, gives = { m = "integer" },
      run = function(ctx) flow.sleep(0) ctx:log "doubling" ctx:set("m", 2 * ctx:get "n") end })
    local list = {}
    for i = 1, 10 do list[i] = { name = "item " .. i } end
    local run = flow.new("double"):add(DoubleOp):add(flow.ops.NextOp):start { n = 20, list = list }
    return run:await().next
    """

  static func register(in host: ScriptHost) {
    host.register(
      Op("NextOp", needs: ["m": "integer"], gives: ["next": "integer"]) { context in
        context.set("next", try context.value("m", as: Int.self) + 1)
      })
  }

  @Test("Hosts in a row leave no memory, descriptor or thread behind")
  func inARow() async {
    await #expect(processExitsWith: .success) {
      var before: ProcessSize?
      for number in 1...Self.count {
        let host = try ScriptHost(vm: LuaVM())
        Self.register(in: host)
        let chunk = try host.vm.load(ByteString(Self.script), name: "script")
        #expect(try host.vm.call(chunk, as: Int.self) == 41)
        host.runToEnd()
        host.close()
        host.loop.shutdown()
        if number == Self.count / 5 { before = ProcessSize() }
      }
      try #require(before).expectNoGrowth()
    }
  }

  @Test("64 hosts at a time on threads of their own leave nothing behind either")
  func atOnce() async {
    await #expect(processExitsWith: .success) {
      var before: ProcessSize?
      let rounds = max(5, Self.count / 64)
      for round in 1...rounds {
        try await withThrowingTaskGroup(of: Int.self) { group in
          for _ in 1...64 {
            group.addTask {
              try await ScriptHost.run(script: .text(Self.script)) { Self.register(in: $0) }
                .value(as: Int.self)
            }
          }
          for try await next in group { #expect(next == 41) }
        }
        if round == max(2, rounds / 5) { before = ProcessSize() }
      }
      try #require(before).expectNoGrowth()
    }
  }
}

/// The size of the process, as the system counts it.
private struct ProcessSize {
  let bytes: Int
  let descriptors: Int
  let threads: Int

  init() {
    // Free memory counts only once the allocator has returned it.
    if let trim = dlsym(nil, "malloc_trim") {
      _ = unsafeBitCast(trim, to: (@convention(c) (Int) -> Int32).self)(0)
    }
    bytes = Self.words(of: "/proc/self/statm").dropFirst().first.map { $0 * 4096 } ?? 0
    descriptors = Self.entries(of: "/proc/self/fd")
    threads = Self.entries(of: "/proc/self/task")
  }

  func expectNoGrowth() {
    var now = ProcessSize()
    // The threads of hosts that have ended are about to end, and those of a pool may begin and end.
    for _ in 1...10_000 where now.threads > threads + 8 || now.descriptors > descriptors {
      usleep(1000)
      now = ProcessSize()
    }
    #expect(bytes > 0 && now.bytes < bytes + (4 << 20), "\(bytes) bytes, then \(now.bytes)")
    #expect(now.descriptors <= descriptors)
    #expect(now.threads <= threads + 8, "\(threads) threads, then \(now.threads)")
  }

  private static func words(of path: String) -> [Int] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, 256, file) != nil else { return [] }
    return String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      .split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
  }

  private static func entries(of path: String) -> Int {
    guard let folder = opendir(path) else { return 0 }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return count
  }
}
