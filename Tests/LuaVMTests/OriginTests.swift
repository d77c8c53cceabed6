@_spi(Scripting) import LuaVM
import Testing

/// Where in a script something was called.
@Suite("Places of calls", .alsoWithout(.frameLayout))
struct OriginTests {
  @Test("A call says its line, however often and from wherever its place is reached")
  func lines() throws {
    let host = try TestHost()
    let vm = host.vm
    try host.install(
      "X",
      [
        "here": { [unowned vm] call in call.answer(.string(vm.text(ofOrigin: call.origin))) }
      ])
    let text = try host.text(
      """
      local function one() return X.here() end
      local function other()
        return X.here()
      end
      local seen = {}
      for i = 1, 3 do
        seen[#seen + 1] = one()
        seen[#seen + 1] = other()
        seen[#seen + 1] = X.here()
        seen[#seen + 1] = X.here() seen[#seen + 1] = select(2, pcall(X.here))
      end
      return table.concat(seen, " ")
      """)
    let round = "script:1 script:3 script:9 script:10 script:10"
    #expect(text == Array(repeating: round, count: 3).joined(separator: " "))
  }
}
