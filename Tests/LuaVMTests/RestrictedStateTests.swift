@_spi(Scripting) import LuaVM
import Testing

@Suite("Restricted states")
struct RestrictedStateTests {
  private static let refusal = "finalizers (__gc) aren't allowed by the host of the script"

  private func host(_ libraries: LuaLibraries = .all) throws -> TestHost {
    try TestHost(LuaConfiguration(libraries: libraries, allowsFinalizers: false))
  }

  @Test("The settings of a restricted state")
  func settings() throws {
    let configuration = LuaConfiguration.restricted
    #expect(configuration.libraries == .safe)
    #expect(!configuration.loadsBytecode && configuration.refusesExit)
    #expect(configuration.permissions == .restricted && !configuration.allowsFinalizers)
    #expect(configuration.ignoresEnvironment)
    #expect(LuaConfiguration().allowsFinalizers)
    let host = try TestHost(.restricted)
    #expect(
      try host.text(
        """
        local t = setmetatable({}, { __index = function(_, k) return k .. k end })
        return t.ab, (pcall(setmetatable, {}, { __gc = print })), io, debug, package
        """) == "abab false nil nil nil")
  }

  @Test(
    "A metatable with a finalizer is refused, whatever its value is",
    arguments: ["function() end", "true", "false", "1", "setmetatable({}, {__call = print})"])
  func refused(_ value: String) throws {
    let host = try host()
    let text = try host.text(
      """
      local ok, e = pcall(function() setmetatable({}, { __gc = \(value) }) end)
      local ok2, e2 = pcall(function() debug.setmetatable({}, { __gc = \(value) }) end)
      return ok, e, ok2, e2
      """)
    #expect(text == "false script:1: \(Self.refusal) false script:2: \(Self.refusal)")
  }

  @Test("Other metatables are set, and messages about wrong arguments stay")
  func allowed() throws {
    let source = """
      local weak = setmetatable({}, { __mode = "k", __name = "weak" })
      local inherited = setmetatable({}, setmetatable({}, { __index = { __gc = error } }))
      return getmetatable(weak).__mode, type(inherited), select(2, pcall(setmetatable)),
        select(2, pcall(setmetatable, {})), select(2, pcall(setmetatable, 1, {})),
        select(2, pcall(setmetatable, {}, 1)), getmetatable(setmetatable(weak, nil)),
        select(2, pcall(setmetatable, setmetatable({}, { __metatable = 1 }), {}))
      """
    #expect(try host().text(source) == TestHost().text(source))
  }

  @Test("A finalizer that comes into a metatable later is never called")
  func later() throws {
    let text = try host().text(
      """
      called = 0
      local function finalizer() called = called + 1 end
      local metatable = {}
      setmetatable({}, metatable)
      metatable.__gc = finalizer
      local refused = not pcall(setmetatable, {}, metatable)
      collectgarbage() collectgarbage()
      return refused, called
      """)
    #expect(text == "true 0")
  }

  @Test("The metatable of files can't be changed")
  func files() throws {
    let host = try host([.safe, .io])
    #expect(
      try host.text(
        "return getmetatable(io.stdout), io.type(io.stdout), (pcall(setmetatable, io.stdout, {}))")
        == "false file false")
    #expect(try TestHost().text("return type(getmetatable(io.stdout))") == "table")
  }

  @Test("A metatable of the host that scripts can change gets no finalizer")
  func hostMetatables() throws {
    let host = try host()
    let metatable = try host.vm.makeTable()
    try host.setGlobal("metatable", .reference(metatable))
    try host.run("called = 0 metatable.__gc = function() called = called + 1 end")
    for _ in 0..<10 { _ = try host.vm.makeTable(metatable: metatable) }
    try host.vm.collectGarbage()
    try host.vm.collectGarbage()
    #expect(try host.text("return called, metatable.__gc") == "0 nil")
    let open = try TestHost()
    let other = try open.vm.makeTable()
    try open.setGlobal("metatable", .reference(other))
    try open.run("called = 0 metatable.__gc = function() called = called + 1 end")
    _ = try open.vm.makeTable(metatable: other)
    try open.vm.collectGarbage()
    try open.vm.collectGarbage()
    #expect(try open.text("return called") == "1")
  }
}
