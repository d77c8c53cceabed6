@_spi(Scripting) import LuaVM
import Testing

/// Running out of the memory that the C side needs for itself, beside Lua's.
@Suite("Failing allocations of C")
struct OwnMemoryTests {
  /// Makes the n-th request fail for n = 1, 2, … until the operation succeeds without meeting it; returns
  /// how many failed. An operation may succeed all the same, or throw an error of memory.
  private func failEach(_ operation: () throws -> Void) -> Int {
    for n in 1..<UInt64(1000) {
      LuaVM.failOwnAllocation(n)
      defer { LuaVM.failOwnAllocation(0) }
      do { try operation() } catch {
        let code = (error as? LuaError)?.code
        #expect(code == .memory || "\(error)".contains("memory"), "n = \(n): \(error)")
      }
      if LuaVM.failOwnAllocation(0) > 0 { return Int(n) - 1 }
    }
    Issue.record("it never succeeded")
    return 0
  }

  @Test("A state is made, or its making throws")
  func states() {
    let failures = failEach { try LuaVM().close() }
    #expect(failures >= 3)
  }

  @Test("No Swift error is lost, however many are kept")
  func errors() {
    let counter = Counted.Counter()
    // Unchecked: it stays on this thread.
    struct Failure: Error, @unchecked Sendable { let counted: Counted }
    let failures = failEach {
      let host = try TestHost()
      try host.install("X", ["fail": { _ in throw Failure(counted: Counted(counter)) }])
      try host.run("kept = {} for i = 1, 100 do kept[i] = select(2, pcall(X.fail)) end")
      #expect(try host.text("return #kept") == "100")
    }
    #expect(failures > 5)
    #expect(counter.living == 0)
  }

  @Test("Values and functions arrive whole, or aren't sent")
  func codec() throws {
    let host = try TestHost()
    let away = try TestHost()
    let value = try host.run(
      "local t = {} for i = 1, 50 do t[i] = { name = 'x' .. i, more = { i } } end return t")[0]
    let function = try host.load(
      """
      local a, b, c, d, e, f, g, h, i = 1, 2, 3, 4, 5, 6, 7, 8, 9
      local function sum() return a + b + c + d + e + f + g + h + i end
      return function() return sum() + a + b + c + d + e + f + g + h + i end
      """)
    let made = try host.vm.call(function)[0]
    guard case .reference(let reference) = made else {
      Issue.record("no function")
      return
    }
    let failures = failEach {
      let buffer = EncodedBuffer()
      try host.vm.encode(value, into: buffer)
      let (arrived, _) = try away.vm.decode(buffer)
      #expect(try away.text("local t = ... return #t, t[50].more[1]", [arrived]) == "50 50")
      let package = try host.vm.pack(reference)
      let unpacked = try away.vm.unpack(package)
      #expect(try away.text("return (...)()", [.reference(unpacked)]) == "90")
    }
    #expect(failures > 5)
    #expect(host.vm.stackDepth == 0 && away.vm.stackDepth == 0)
  }

  @Test("References, types and operations do without, or fail")
  func references() throws {
    let failures = failEach {
      let host = try TestHost()
      var kept: [LuaReference] = []
      for _ in 0..<200 { kept.append(try host.load("return 1")) }
      for i in 0..<20 {
        _ = try host.vm.defineObjectType("type\(i)", of: Counted.self, methods: [:])
      }
      let task = try host.operation("error('wrong')", deadline: -1_000_000_000)
      if case .success? = task.result { Issue.record("an error was lost") }
      #expect(try host.text("return 1 + 1") == "2")
    }
    #expect(failures > 5)
  }
}
