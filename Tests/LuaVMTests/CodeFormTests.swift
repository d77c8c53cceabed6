@_spi(Scripting) import LuaVM
import Testing

/// Forms of code, which are compared with those of other states.
@Suite("Forms of code", .alsoWithout(.tableLayout), .alsoWithout(.dumpLayout))
struct CodeFormTests {
  private func form(_ script: String) throws -> [UInt8] {
    let host = try TestHost()
    return try form(host, script)
  }

  private func form(_ host: TestHost, _ script: String) throws -> [UInt8] {
    guard
      case .reference(let function)? = try host.vm.call(host.load(script, name: "script.lua"))
        .first
    else { throw TestProblem("no function") }
    let bytes = try host.vm.codeForm(of: function, describer: PlainDescriber())
    #expect(host.vm.stackDepth == 0)
    return bytes
  }

  private let script = """
    local a, t = 1, { x = 2 }
    local function twice(n) return 2 * n end
    return function(n) return twice(n) + a + t.x end
    """

  @Test("Names of locals don't count, what the code does counts")
  func looksDoNotCount() throws {
    let form = try form(script)
    #expect(try self.form(script) == form)
    #expect(
      try self.form(
        """
        local b, u = 1, { x = 2 }
        local function double(m) --[[ a comment ]] return 2 * m end
        return function(m) return double(m) + b + u.x end
        """) == form)
    for (old, new) in [("2 * n", "3 * n"), ("x = 2", "x = 3"), ("a, t = 1", "a, t = 1.0")] {
      #expect(try self.form(script.replacing(old, with: new)) != form)
    }
  }

  @Test("Lines count only where dumps aren't known")
  func linesCountOnlyInTheFallback() throws {
    let isKnown = !TestHost.withheld.contains(.dumpLayout)
    #expect((try form("\n\n" + script) == form(script)) == isKnown)
  }

  @Test("Globals that a function uses count")
  func globalsCount() throws {
    let script = "function one() return 1 end return function() return one() end"
    #expect(try form(script) == form(script))
    #expect(try form(script) != form(script.replacing("return 1", with: "return 2")))
  }

  @Test("A form succeeds or throws when memory runs out")
  func memoryRunsOut() throws {
    let host = try TestHost()
    let script = """
      local f = print
      local keys = { [function() end] = 1, [{}] = 2, x = setmetatable({}, { 1 }) }
      function global() return keys end
      return function() return f, keys, coroutine, global, io.stdout, missing end
      """
    guard
      case .reference(let function)? = try host.vm.call(host.load(script, name: "script.lua"))
        .first
    else { throw TestProblem("no function") }
    let describer = PlainDescriber()
    let whole = try host.vm.codeForm(of: function, describer: describer)
    for n in 1..<UInt64(5_000) {
      host.vm.failAllocation(n)
      do {
        #expect(try host.vm.codeForm(of: function, describer: describer) == whole)
      } catch let error as LuaError {
        #expect(error.code == .memory)
      }
      #expect(host.vm.stackDepth == 0)
      if host.vm.failAllocation(0) != 0 { return }
    }
    Issue.record("it never succeeded")
  }
}

/// Knows the libraries only.
private final class PlainDescriber: LuaCodeDescriber {
  func description(of object: AnyObject) throws -> LuaValue? { nil }

  func isLibrary(_ name: ByteString) -> Bool { true }

  func content(ofModule name: ByteString) throws -> LuaModuleContent { .name }
}
