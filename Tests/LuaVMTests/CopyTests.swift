@_spi(Scripting) import LuaVM
import Testing

/// Copies of tables within a state, as each run gets them of its flow's data.
@Suite("Copies of tables", .alsoWithout(.tableLayout))
struct CopyTests {
  let host: TestHost

  init() throws {
    host = try TestHost()
  }

  /// Calls a function about a table and its copy, which it gets as `t` and `c`; its result as text.
  private func told(_ table: String, _ question: String) throws -> String {
    guard case .reference(let original) = try host.run("return \(table)")[0] else {
      throw TestProblem("no table")
    }
    let copy = try host.vm.copy(original, memo: try host.vm.makeTable())
    return try host.text(
      "local t, c = ... \(question)", [.reference(original), .reference(copy)])
  }

  @Test(
    "A copy has the same values as its table, and is another one",
    arguments: [
      "{}", "{7}", "{1, 2.5, -3, math.mininteger, 1/0, -0.0}", "{1, 2, nil, 4}", "{nil, 2}",
      "{1, 2, 'three'}", "{1, 2, {3, 4.5}, {{5}}}", "{1, 2, n = 2}", "{[0] = 0, 1, 2, [2^53] = 3}",
      "{10, 20, true, false}", "table.pack(1, nil, 3)",
      "(function() local t = {} for i = 1, 500 do t[i] = i + 0.5 end return t end)()",
      "(function() local t = {} for i = 300, 1, -1 do t[i] = i end return t end)()",
      "(function() local t = {} for i = 1, 90 do t[i] = i end "
        + "for i = 90, 41, -1 do t[i] = nil end return t end)()",
      "(function() local t = {} for i = 1, 70000 do t[i] = i end return t end)()",
    ])
  func values(_ table: String) throws {
    let question =
      """
      local function same(a, b)
        if type(a) ~= 'table' then return rawequal(a, b) and math.type(a) == math.type(b) end
        if rawequal(a, b) then return false end
        for k, v in pairs(a) do if not same(v, b[k]) then return false end end
        for k in pairs(b) do if a[k] == nil then return false end end
        return true
      end
      return same(t, c)
      """
    #expect(try told(table, question) == "true")
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A list and its copy change and grow apart")
  func apart() throws {
    let question =
      """
      c[1], t[2] = 'c', 't'
      for i = 4, 100 do c[i] = i end
      collectgarbage()
      return t[1], t[2], #t, c[1], c[2], c[3], #c
      """
    #expect(try told("{1, 2, 3}", question) == "1 t 3 c 2 3 100")
  }

  @Test("A failure of any allocation is an error")
  func everyAllocationMayFail() throws {
    guard case .reference(let table) = try host.run("return {{1, 2.5}, {'x', {3}}, k = {}}")[0]
    else { return }
    try MemoryTests.failEach(host, "copy") {
      _ = try host.vm.copy(table, memo: try host.vm.makeTable())
    }
  }
}
