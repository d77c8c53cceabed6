import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

/// Attacks that a script could try against the scripts of other states and against its host, each in restricted
/// states of one process.
@Suite("Attacks between restricted scripts")
struct RestrictedAttackTests {
  /// Lists what a script finds in its library tables, its globals, the metatable of strings, and the tables of the
  /// host: paths, and the identities of functions.
  private static let snapshot = """
    local seen, lines = {}, {}
    local function add(path, value)
      if type(value) == "table" then
        if seen[value] then return end
        seen[value] = true
        lines[#lines + 1] = path .. " metatable " .. tostring(getmetatable(value))
        local keys = {}
        for key in next, value do keys[#keys + 1] = key end
        table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
        for _, key in ipairs(keys) do add(path .. "." .. tostring(key), rawget(value, key)) end
      else
        lines[#lines + 1] = path .. " " .. tostring(value)
      end
    end
    add("_G", _G)
    add("string metatable", getmetatable(""))
    add("nil metatable", getmetatable(nil))
    add("number metatable", getmetatable(1))
    add("function metatable", getmetatable(print))
    add("shared", shared)
    return table.concat(lines, "\\n")
    """

  /// A script with a table of its host, `shared`, and a function of its host, `host_function`, which returns it.
  private func script() throws -> ScriptProgram {
    var configuration = LuaConfiguration.restricted
    configuration.output = .discarded
    configuration.instructionLimit = 100_000_000
    let program = try ScriptProgram(configuration)
    let shared = try program.vm.makeTable(fields: [("secret", .integer(42))])
    try program.vm.setGlobal("shared", .reference(shared))
    let function = try program.vm.makeFunction { call in call.answer(.reference(shared)) }
    try program.vm.setGlobal("host_function", .reference(function))
    return program
  }

  /// Executes attacks in one state, and expects that another one, made before, and a new one are as before.
  private func expectHarmless(
    _ attack: String, returns expected: String? = nil, line: UInt = #line
  ) throws {
    let victim = try script()
    let before = try victim.text(Self.snapshot)
    let attacker = try script()
    // An error is a refusal.
    let result = try attacker.text(
      """
      local ok, result = pcall(function() \(attack) end)
      return (tostring(result):gsub("^script.lua:%d+: ", ""))
      """)
    if let expected { #expect(result == expected, "\(attack)") }
    #expect(try victim.text(Self.snapshot) == before, "\(attack)")
    try expectUnharmed(victim)
    try expectUnharmed(try script())
    // The state itself can be collected and closed.
    try attacker.collect()
  }

  /// Expects that the libraries of a state do what they should.
  private func expectUnharmed(_ program: ScriptProgram) throws {
    #expect(
      try program.text(
        """
        local run = flow.op("AddOp", { needs = { n = "integer" }, gives = { m = "integer" },
          run = function(ctx) ctx:set("m", ctx:get "n" + 1) end }):run { n = 1 }
        return table.concat({ ("abc"):upper(), math.floor(1.5), tostring(nil), type(print), run.data.m,
          #host_function() == 0 and shared.secret, tostring(pcall(error)), select("#", 1, 2),
          tostring(require "string" == string), load("return 4")() }, " ")
        """) == "ABC 1 nil function 2 42 false 2 true 4")
  }

  @Test("The metatable of strings is replaced")
  func metatableOfStrings() throws {
    try expectHarmless(
      """
      local meta = getmetatable("")
      meta.__index = function() return function() return "HACKED" end end
      meta.__add = function() return "HACKED" end
      meta.__len, meta.__concat, meta.__eq = error, error, error
      return ("abc"):upper()
      """, returns: "HACKED")
  }

  @Test("Library functions are replaced")
  func libraryFunctions() throws {
    try expectHarmless(
      """
      local names = {}
      for name, library in pairs(_G) do
        if type(library) == "table" and library ~= _G then
          for key in pairs(library) do names[#names + 1] = { library, key } end
        end
      end
      local format = string.format
      for _, each in ipairs(names) do each[1][each[2]] = function() return "HACKED" end end
      string.format = format
      pairs, ipairs, next, select, type, print, error = nil
      pcall, tostring = function() return true, "HACKED" end, function() return setmetatable({}, { __index = string }) end
      """)
  }

  @Test("`rawset` changes a library")
  func rawset() throws {
    try expectHarmless(
      """
      rawset(math, "floor", function() return "HACKED" end)
      rawset(_G, "print", nil)
      rawset(string, "upper", function() return "HACKED" end)
      return ("abc"):upper() .. math.floor(1.5)
      """, returns: "HACKEDHACKED")
  }

  @Test("The table of loaded modules is poisoned")
  func loadedModules() throws {
    try expectHarmless(
      "package.loaded.string = {}", returns: "attempt to index a nil value (global 'package')")
    try expectHarmless(
      """
      local flow = require "flow"
      flow.op, flow.sleep, flow.new = nil, nil, nil
      require("string").upper = function() return "HACKED" end
      return ("abc"):upper()
      """, returns: "HACKED")
  }

  @Test("The registry and `debug` are reached")
  func registry() throws {
    try expectHarmless("return debug", returns: "nil")
    for module in ["debug", "io", "package", "lfs", "posix", "ffi"] {
      try expectHarmless(
        "return require '\(module)'",
        returns: "module '\(module)' not found: the host of the script allows no modules of files")
    }
    try expectHarmless(
      """
      local found = {}
      local function look(value, depth)
        if type(value) ~= "table" or found[value] or depth > 8 then return end
        found[value] = true
        assert(rawget(value, "_LOADED") == nil and rawget(value, "_PRELOAD") == nil, "registry")
        for key, each in next, value do look(key, depth + 1) look(each, depth + 1) end
        look(getmetatable(value), depth + 1)
      end
      look(_G, 0) look(require "flow", 0) look(getmetatable(""), 0)
      return "not found"
      """, returns: "not found")
  }

  @Test("Values are taken out of functions of the host")
  func upvalues() throws {
    try expectHarmless(
      "return string.dump(host_function)",
      returns: "string.dump isn't allowed by the host of the script")
    try expectHarmless(
      """
      local co = coroutine.wrap(host_function)
      local t = co()
      t.secret = 0
      setmetatable(t, { __index = function() return "HACKED" end })
      return host_function().other
      """, returns: "HACKED")
  }

  @Test("Metatables of nil, numbers and functions are set")
  func metatablesOfTypes() throws {
    for value in ["nil", "1", "true", "print", "coroutine.create(print)"] {
      try expectHarmless(
        """
        local ok = pcall(setmetatable, \(value), { __index = _G, __call = error })
        return tostring(ok) .. tostring(getmetatable(\(value)))
        """, returns: "falsenil")
    }
  }

  @Test("`load` is used with the globals of its state")
  func load() throws {
    try expectHarmless(
      """
      local sandbox = { load = load }
      load("print, string.upper, shared = nil, nil, {}", "=x", "t")()
      load("x = load('pairs = nil')()", "=x", "t", sandbox)()
      return tostring(print) .. tostring(pairs) .. tostring(shared.secret)
      """, returns: "nilnilnil")
    try expectHarmless("return load('return 1', '=x', 'b')", returns: "nil")
  }

  @Test("Objects are resurrected by finalizers")
  func finalizers() throws {
    try expectHarmless(
      "setmetatable({}, { __gc = function(o) _G.resurrected = o end })",
      returns: "finalizers (__gc) aren't allowed by the host of the script")
    try expectHarmless(
      """
      local function resurrect(o) called = true _G.resurrected = o end
      local meta = {}
      local t = setmetatable({}, meta)
      meta.__gc, t = resurrect, nil
      local failed = flow.op("FailingOp", function() error "x" end):run().error
      local error_meta = getmetatable(failed)
      if type(error_meta) == "table" then error_meta.__gc = resurrect end
      for i = 1, 10 do flow.op("FailingOp", function() error "x" end):run() end
      for _, text in ipairs { "[]", "[1]" } do
        local list_meta = getmetatable(flow.json.decode(text))
        if list_meta then list_meta.__gc = resurrect flow.json.decode(text) end
      end
      local view_meta = getmetatable(flow.op("O", function() end):run().data)
      if type(view_meta) == "table" then view_meta.__gc = resurrect flow.op("O", function() end):run() end
      failed = nil
      collectgarbage() collectgarbage()
      return called
      """, returns: "nil")
  }

  @Test("Error objects carry tables of the host")
  func errorObjects() throws {
    try expectHarmless(
      """
      local e = flow.op("FailingOp", function() error(shared) end):run().error
      e.cause.secret = "HACKED"
      e.message, e.kind = setmetatable({}, { __tostring = error }), {}
      local meta = getmetatable(e)
      if type(meta) == "table" then meta.__tostring, meta.__index, meta.__concat = error, error, error end
      return rawequal(e.cause, shared)
      """, returns: "true")
    // Values that reach Swift, and from there another state, are data.
    let attacker = try script()
    let run = try attacker.endedRun(
      "return flow.op('FailingOp', function() error(setmetatable({ message = 'm' }, { __index = _G })) end)"
    )
    let victim = try script()
    let before = try victim.text(Self.snapshot)
    let error = try #require(run.error)
    let fail = try victim.vm.makeFunction { _ in throw error }
    try victim.vm.setGlobal("fail", .reference(fail))
    #expect(
      try victim.text("local e = select(2, pcall(fail)) return type(e) .. tostring(e)").contains(
        "m"))
    try victim.vm.setGlobal("fail", .nil)
    #expect(try victim.text(Self.snapshot) == before)
  }

  @Test("Bytecode, with each byte of it flipped, is refused")
  func bytecode() throws {
    let maker = try LuaVM()
    defer { maker.close() }
    let dumped = try maker.call(
      maker.load(
        "return string.dump(load('local a, b = ... return function() return a + b, \"text\" end'))",
        name: "x")
    ).first
    guard case .string(let code)? = dumped else {
      Issue.record("no dump")
      return
    }
    let attacker = try script()
    let victim = try script()
    let before = try victim.text(Self.snapshot)
    let load = try attacker.load(
      """
      local code = ...
      local found = {}
      for _, mode in ipairs { "b", "bt", "t", false } do
        for i = 0, #code do
          for _, mask in ipairs { 0x01, 0x80, 0xff } do
            local changed = i == 0 and code
              or code:sub(1, i - 1) .. string.char(code:byte(i) ~ mask) .. code:sub(i + 1)
            local f, message = load(changed, "=x", mode or nil)
            -- With another first byte it is a text.
            if f then found[#found + 1] = i end
            if i ~= 1 and message ~= "bytecode isn't allowed by the host of the script" then
              found[#found + 1] = message
            end
            local parts = { changed:sub(1, 1), changed:sub(2) }
            if load(function() return table.remove(parts, 1) end, "=x", mode or nil) then
              found[#found + 1] = "by parts"
            end
          end
        end
      end
      return #found == 0 and "refused" or tostring(found[1])
      """)
    let result = try attacker.vm.call(load, [.string(code)])
    #expect(result == ["refused"])
    #expect(throws: LuaError.self) { try attacker.vm.load(code, name: "x", mode: .any) }
    #expect(try victim.text(Self.snapshot) == before)
    try expectUnharmed(victim)
  }

  @Test("A script that ends by a limit leaves the others alone")
  func limits() throws {
    let victim = try script()
    let before = try victim.text(Self.snapshot)
    for body in [
      "while true do pcall(function() while true do end end) end",
      "local t = {} while true do t[#t + 1] = {} end",
      "local function f() return f() + 1 end while true do pcall(f) end",
    ] {
      let attacker = try script()
      attacker.vm.memoryLimit = 16 << 20
      attacker.vm.instructionLimit = 3_000_000
      #expect(throws: LuaError.self) { try attacker.run(body) }
      try expectUnharmed(victim)
    }
    #expect(try victim.text(Self.snapshot) == before)
  }
}
