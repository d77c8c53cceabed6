@_spi(Scripting) import LuaVM
import Testing

/// Functions of the libraries `string` and `table` that restricted states have instead of Lua's own, so that none of them
/// outlasts a stop.
@Suite("Library functions of restricted states")
struct PacedLibraryTests {
  private func run(_ source: String, _ configuration: LuaConfiguration) throws -> [String] {
    let vm = try LuaVM(configuration: configuration)
    let results = try vm.call(try vm.load(ByteString(source), name: "chunk"))
    return results.compactMap { if case .string(let text) = $0 { text.description } else { nil } }
  }

  /// Expects that a chunk returns the same texts in a restricted state as with Lua's own functions.
  private func expectSame(_ source: String, at place: SourceLocation = #_sourceLocation) throws {
    let own = try run(source, LuaConfiguration())
    let paced = try run(source, .restricted)
    #expect(!own.isEmpty && own.count == paced.count, sourceLocation: place)
    for (own, paced) in zip(own, paced) where own != paced {
      let lines = zip(own.split(separator: "\n"), paced.split(separator: "\n"))
      let different = lines.first { $0 != $1 }
      Issue.record("\(different.map { "\($0) became \($1)" } ?? "lengths")", sourceLocation: place)
    }
  }

  private static let shared = """
    local lines = {}
    local function show(...)
      local t = table.pack(...)
      for i = 1, t.n do t[i] = tostring(t[i]):gsub("^table: .*", "table"):gsub("^function: .*", "function") end
      -- Other versions of Lua say more, or name the other argument.
      local line = table.concat(t, "|"):gsub(" in replacement string$", "")
        :gsub("invalid value %(%a+%) at index (%d+)", "invalid value (at index %1)")
      lines[#lines + 1] = line:gsub("#1 to 'table.remove' %(position", "#2 to 'table.remove' (position")
    end

    """

  @Test("Random patterns match as Lua's own do, and fail with the same errors", arguments: 1...8)
  func patterns(seed: Int) throws {
    try expectSame(
      """
      math.randomseed(\(seed))
      \(Self.shared)
      local items = { "a", "b", ".", "%a", "%d", "%s", "%w", "%W", "%z", "[ab]", "[^a]", "[a-c%d]", "[]]",
        "[^]]", "[a-]", "(", ")", "()", "(a)", "(.-)", "%1", "%2", "%0", "^", "$", "%b()", "%bab", "%f[%w]",
        "%f[^a]", "*", "+", "-", "?", "%%", "%", "[", "[%", "%b", "%f", "%fa", "]", "1", " ", "\\0", "%g+",
        "%p", "%x*", "%u", "%c", ("a-"):rep(201), ("(a"):rep(33) }
      local texts = { "a", "b", "c", "1", " ", "(", ")", "A", "\\0", "ab", "aba", "%", "-", "]" }
      local function make(list, n)
        local t = {}
        for i = 1, math.random(0, n) do t[i] = list[math.random(#list)] end
        return table.concat(t)
      end
      local replacements = { "x", "%0", "%1", "%2", "<%1%0>", "%%", "%", "%x", 7, true,
        function(...) return select("#", ...) end, function() end, function() return {} end,
        { a = "z", b = 1, ab = false, [""] = "e" }, setmetatable({}, { __index = function(_, k) return k .. "!" end }) }
      local function matches(...)
        local all = {}
        for a, b, c in string.gmatch(...) do
          all[#all + 1] = tostring(a) .. "," .. tostring(b) .. "," .. tostring(c)
          if #all > 100 then break end
        end
        return table.concat(all, ";")
      end
      for i = 1, 20000 do
        local s, p, start = make(texts, 8), make(items, 6), math.random(-10, 12)
        local kind, replacement = math.random(5), replacements[math.random(#replacements)]
        local count = math.random() < .5 and 2 or nil
        if kind == 1 then show(s, p, start, pcall(string.find, s, p, start))
        elseif kind == 2 then show(s, p, start, pcall(string.match, s, p, start))
        elseif kind == 3 then show(s, p, start, pcall(matches, s, p, start))
        elseif kind == 4 then show(s, p, pcall(string.gsub, s, p, replacement, count))
        else show(s, p, start, pcall(string.find, s, p, start, true)) end
      end
      return table.concat(lines, "\\n")
      """)
  }

  @Test("Wrong arguments are refused with the same errors")
  func arguments() throws {
    try expectSame(
      """
      \(Self.shared)
      local values = { 0, 1, -1, 1.5, "x", "", true, {}, print, 1 << 62, math.mininteger, "1" }
      for _, name in ipairs { "find", "match", "gmatch", "gsub", "rep" } do
        show(name, pcall(string[name]))
        for _, a in ipairs(values) do
          if name ~= "rep" or type(a) ~= "string" and type(a) ~= "number" then
            show(name, pcall(string[name], a))
            for _, b in ipairs(values) do show(name, pcall(string[name], "ab", a, b)) end
          end
        end
      end
      for _, name in ipairs { "insert", "remove", "sort", "concat" } do
        show(name, pcall(table[name]))
        for _, a in ipairs(values) do
          show(name, pcall(table[name], a))
          show(name, pcall(table[name], { 1, 2, 3 }, a))
          if name == "insert" then show(name, pcall(table.insert, { 1, 2, 3 }, a, "v"), pcall(table.insert, {}, 1, 2, 3)) end
        end
      end
      for _, a in ipairs(values) do
        for _, b in ipairs(values) do
          if math.tointeger(b) ~= 1 << 62 then
            show("move", pcall(table.move, { 1, 2, 3 }, a, b, 2), pcall(table.move, { 1 }, 1, 2, b))
            show("move", pcall(table.move, a, 1, 1, 1), pcall(table.move, { 1 }, 1, 1, 1, a))
          end
        end
      end
      show("move", pcall(table.move, {}, 1, math.maxinteger, 2), pcall(table.move, {}, -1, math.maxinteger, 1))
      show("rep", ("ab"):rep(3), ("ab"):rep(2, ","), (""):rep(5, ","), (""):rep(10), ("x"):rep(0), ("x"):rep(-1))
      show("rep", pcall(string.rep, "abc", 1 << 62), pcall(string.rep, "", 2, {}))
      return table.concat(lines, "\\n")
      """)
  }

  @Test("Lists are changed as by Lua's own functions, also through metamethods", arguments: 1...4)
  func lists(seed: Int) throws {
    try expectSame(
      """
      math.randomseed(\(seed))
      \(Self.shared)
      local function list(n) local t = {} for i = 1, n do t[i] = math.random(1000) end return t end
      local function proxy(t)
        return setmetatable({}, { __index = t, __newindex = t, __len = function() return #t end })
      end
      for i = 1, 300 do
        local t = list(math.random(0, 30))
        local target = math.random() < .3 and proxy(t) or t
        for _ = 1, 10 do
          local kind, n = math.random(5), #t
          if kind == 1 then show(pcall(table.insert, target, math.random(0, n + 2), "new"))
          elseif kind == 2 then table.insert(target, "end")
          elseif kind == 3 then show(pcall(table.remove, target, math.random(0, n + 2)))
          elseif kind == 4 then show(table.remove(target))
          else
            local from, to = math.random(1, n + 1), math.random(1, n + 1)
            table.move(target, from, math.min(n, from + math.random(0, 5)), to, math.random() < .3 and {} or nil)
          end
        end
        show(table.concat(t, " "))
      end
      local large = list(20000)
      table.sort(large)
      show(table.concat(large, " "))
      table.sort(large, function(a, b) return a > b end)
      show(table.concat(large, " "))
      show(pcall(table.sort, { 1, "x", 2 }), pcall(table.sort, { 3, 1 }, rawequal), pcall(table.sort, { {}, 1 }))
      local words = {}
      for i = 1, 500 do words[i] = ("w"):rep(math.random(400)) .. i end
      table.sort(words)
      show(table.concat(words, " "))
      show(pcall(table.sort, words, rawequal))
      local twice = proxy(list(50))
      table.sort(twice)
      show(table.concat(twice, ","), table.concat({ 1, 2.5, "x" }, "-", 2, 3), table.concat({}, ","), table.concat({ 1 }, ",", 2))
      for _, a in ipairs { { {} }, { 1, true }, { setmetatable({}, { __len = function() return 2 end }), "," }, { {}, 1, "x" }, { 3 } } do
        show(pcall(table.concat, table.unpack(a)))
      end
      show(pcall(load, function() end), load("return 1")(), pcall(load, type))
      return table.concat(lines, "\\n")
      """)
  }

  private static let endless = [
    "return ('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
    "return ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
    "for _ in ('a'):rep(40):gmatch(('a?'):rep(40) .. ('a'):rep(40) .. 'b') do end",
    "return ('a'):rep(40):gsub(('a?'):rep(40) .. ('a'):rep(40) .. 'b', '')",
    "return ('x'):rep(1000000):find(('.-'):rep(20) .. 'y')",
    "return ('x'):rep(1000000):match('(.*)(.*)(.*)%1%2%3y')",
    "return ('('):rep(1000000):gsub('%b()', '')",
    "return ('a'):rep(100000):find('[' .. ('b'):rep(100000) .. ']')",
    "table.move({}, 1, 1 << 62, 2)",
    "table.insert(setmetatable({}, { __len = function() return 1 << 62 end }), 1, 1)",
    "table.remove(setmetatable({}, { __len = function() return 1 << 62 end }), 1)",
    "local t = {} for i = 1, 300000 do t[i] = -i end table.sort(t)",
    "('a'):rep(100000):find('[a' .. ('b'):rep(10000000) .. ']x')",
    "('x'):rep(10000000):find('^(.-)%1y')",
    "local t, s = {}, ('a'):rep(1000000) for i = 1, 4000 do t[i] = s end table.sort(t)",
    // Metamethods, comparisons and readers in C, within which no instruction of Lua is executed.
    "table.concat(setmetatable({}, { __index = getmetatable, __metatable = '' }), '', 1, 1 << 62)",
    "table.sort(setmetatable({}, { __len = function() return (1 << 31) - 2 end, __index = getmetatable,"
      + " __metatable = '', __newindex = type }))",
    "table.move(setmetatable({}, { __index = getmetatable, __metatable = '' }), 1, 1 << 62, 2, {})",
    "load(collectgarbage)",
  ]

  @Test("A limit of instructions counts what they do", arguments: endless)
  func limited(source: String) throws {
    var configuration = LuaConfiguration.restricted
    configuration.instructionLimit = source.contains("collect") ? 510_000 : 5_000_000
    let error = #expect(throws: LuaError.self) { _ = try run(source, configuration) }
    #expect(error?.code == .instructions, "\(String(describing: error))")
  }

  @Test("An iterator that a metamethod calls again within a match stays sound")
  func iterators() throws {
    let count = try run(
      """
      local it = ("ab "):rep(10000):gmatch "(%a+)()"
      local n = 0
      for word in it do n = n + 1 it() end
      return tostring(n)
      """, .restricted)
    #expect(count == ["5000"])
  }

  @Test("An empty string that is repeated without end is empty at once")
  func empty() throws {
    #expect(try run("return (''):rep(1 << 62)", .restricted) == [""])
  }
}
