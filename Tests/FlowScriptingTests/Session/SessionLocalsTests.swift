import Foundation
@_spi(Scripting) import LuaVM
import Testing

@testable import FlowScripting

@Suite("The variables of a session")
struct SessionLocalsTests {
  /// A session without a terminal.
  struct Lines {
    let vm: LuaVM
    let locals: SessionLocals

    init() throws {
      vm = try LuaVM()
      locals = try SessionLocals(vm)
    }

    @discardableResult
    func run(_ chunk: String, name: String = "=stdin") throws -> [String] {
      let function = try locals.load(Array(chunk.utf8), chunkName: name)
      return try vm.callSessionChunk(function).map { try vm.tostring($0).description }
    }

    /// The message and the traceback of a chunk that fails.
    func failure(_ chunk: String) -> String {
      do {
        try run(chunk)
        return "(none)"
      } catch let error as LuaSessionError {
        return "\(error.error)\n\(error.traceback?.description ?? "")"
      } catch {
        return "\(error)"
      }
    }
  }

  @Test("The function that takes variables refuses functions of C")
  func functionsOfC() throws {
    let lines = try Lines()
    let failure = lines.failure(
      """
      local x = 1
      local own, index = debug.getinfo(1, 'f').func, 0
      repeat
        index = index + 1
        local name, value = debug.getupvalue(own, index)
        if name == '_KEEP' then value('y', string.gmatch('a', 'a')) end
      until not name
      """)
    #expect(failure.contains("Lua function expected"))
    #expect(try lines.run("return x, y") == ["1", "nil"])
  }

  @Test("A variable is visible to later chunks, with its value, and shared with its closures")
  func lasting() throws {
    let lines = try Lines()
    try lines.run("local n, name = 1")
    try lines.run("local function add() n = n + 1 return n end")
    #expect(try lines.run("return add(), n, name") == ["2", "2", "nil"])
    try lines.run("n = 10")
    #expect(try lines.run("return add()") == ["11"])
    // A new one of the same name leaves the old one to those who have captured it.
    try lines.run("local n = n * 2")
    #expect(try lines.run("return add(), n") == ["12", "22"])
    #expect(try lines.run("return rawget(_G, 'n')") == ["nil"])
    #expect(Set(lines.locals.names().map(\.description)) == ["n", "name", "add"])
  }

  @Test("Only the top level of a chunk declares lasting variables, and strings declare none")
  func topLevel() throws {
    let lines = try Lines()
    try lines.run(
      """
      do local inner = 1 end
      for i = 1, 2 do local inner = i end
      local s, t = "local inner = 1", [==[
      local inner]] = 2 ]==] -- local inner = 3
      local f = function() local inner = 4 end --[[ local inner = 5 ]]
      if s then local inner = 6 elseif t then local inner = 7 else local inner = 8 end
      while not s do local inner = 9 end repeat local inner = 10 until true
      """)
    #expect(Set(lines.locals.names().map(\.description)) == ["s", "t", "f"])
    #expect(try lines.run("return inner, #t > 0") == ["nil", "true"])
  }

  @Test("Assignments before an error last")
  func raising() throws {
    let lines = try Lines()
    #expect(
      lines.failure("local a = 1 local f = function() return a end a = 2 error 'x' local b = 1")
        .contains("stdin:1: x"))
    #expect(try lines.run("return a, f(), b") == ["2", "2", "nil"])
  }

  @Test("Constants stay constants, of the compiler and others")
  func constants() throws {
    let lines = try Lines()
    try lines.run("local five <const>, made <const> = 5, {}")
    #expect(try lines.run("return five, type(made)") == ["5", "table"])
    #expect(lines.failure("five = 6") == "stdin:1: attempt to assign to const variable 'five'")
    #expect(lines.failure("\nmade = 6") == "stdin:2: attempt to assign to const variable 'made'")
    #expect(lines.failure("return function() five = 6 end").contains("const variable 'five'"))
    try lines.run("local five = 7")
    #expect(try lines.run("five = five + 1 return five") == ["8"])
  }

  @Test("Variables with <close> are closed at the end, the last one first")
  func closing() throws {
    let lines = try Lines()
    try lines.run(
      "order = '' function closable(name, fails) return setmetatable({}, { __close = "
        + "function(_, e) order = order .. name .. tostring(e and 1) .. ' ' "
        + "if fails then error('bad ' .. name, 0) end end }) end")
    try lines.run("local a <close> = closable 'a'")
    try lines.run("local b <close> = closable('b', true)")
    try lines.run("local none <close> = nil local no <close> = false")
    try lines.run("local c <close> = closable 'c'")
    #expect(try lines.run("return order, type(a)") == ["", "table"])
    #expect(
      lines.failure("local d <close> = 12")
        == "stdin:1: variable 'd' got a non-closable value\nstack traceback:\n"
        + "\tstdin:1: in main chunk\n\t[C]: in ?")
    #expect(lines.failure("a = 1").contains("attempt to assign to const variable 'a'"))
    #expect(throws: (any Error).self) { try lines.locals.close() }
    #expect(try lines.run("return order") == ["cnil bnil a1 "])
    try lines.locals.close()
    #expect(try lines.run("return order") == ["cnil bnil a1 "])
  }

  @Test("The number of variables is unlimited, and a chunk may use some hundred")
  func many() throws {
    let lines = try Lines()
    for i in 1...1000 { try lines.run("local v\(i) = \(i)") }
    let names = (701...940).map { "v\($0)" }
    #expect(
      try lines.run("v701 = 0 return \(names.joined(separator: " + "))")
        == ["\((701...940).reduce(0, +) - 701)"])
    // Two hundred in one chunk are as many as Lua lets it have.
    let list = (1...199).map { "w\($0)" }.joined(separator: ", ")
    try lines.run("local \(list) = 1, 2")
    #expect(try lines.run("return w1, w2, w199") == ["1", "2", "nil"])
    #expect(lines.failure("local \(list), x1, x2 = 1").contains("too many local variables"))
  }

  @Test("Messages and line numbers are those of the typed text")
  func messages() throws {
    let lines = try Lines()
    try lines.run("local u, t = nil, {}")
    #expect(
      lines.failure("u()")
        == "stdin:1: attempt to call a nil value (upvalue 'u')\nstack traceback:\n"
        + "\tstdin:1: in main chunk\n\t[C]: in ?")
    #expect(lines.failure("local x = 1\n\nt.y.z = 1").hasPrefix("stdin:3: attempt to index a nil"))
    #expect(
      lines.failure("t = t local x = \n\n\n\nlocal y")
        == lines.failure("local x = \n\n\n\nlocal y"))
    let long = String(repeating: "t = t\n", count: 400)
    let failure = lines.failure(
      long + "local v = {\n" + long.replacingOccurrences(of: "t = t", with: "1,") + "} error 'far'")
    #expect(failure.contains("stdin:802: far") && failure.contains("stdin:802: in main chunk"))
    // Lines of functions inside, which are far from each other, too.
    #expect(
      lines.failure("local f = function()\(long) error 'deep' end f(t)")
        .contains("stdin:401: deep"))
    #expect(
      lines.failure("return u.x, '\(String(repeating: "s", count: 500))', 1 << 62, 1e300, 0x7p3")
        .contains("upvalue 'u'"))
    #expect(try lines.run("return debug.getinfo(1, 'S').what, ...") == ["main"])
    #expect(
      try lines.run("local z = t return debug.traceback('here')")
        == ["here\nstack traceback:\n\tstdin:1: in main chunk\n\t[C]: in ?"])
  }

  @Test("Labels, a return at the end, parentheses after a call, and other names stay what they are")
  func forms() throws {
    let lines = try Lines()
    #expect(
      try lines.run(
        "local i, fs = 1, {} ::top:: local k = i fs[i] = function() return k end i = i + 1 "
          + "if i < 4 then goto top end") == [])
    #expect(try lines.run("return fs[1](), fs[2](), fs[3](), k") == ["1", "2", "3", "3"])
    #expect(try lines.run("do goto out end local skipped = 1 ::out::") == [])
    #expect(
      try lines.run("local a = 1 (print or 1)() local b = 2; (print)() return a, b") == ["1", "2"])
    try lines.run("local _KEEP = 5")
    #expect(try lines.run("local _KEEP_ = 6 return _KEEP, _KEEP_") == ["5", "6"])
    try lines.run("local _ = 1")
    #expect(try lines.run("return _") == ["nil"])
    try lines.run("local _ENV = setmetatable({ only = 1 }, { __index = _ENV })")
    #expect(try lines.run("return only") == ["1"])
    try lines.run("new = 2")
    #expect(try lines.run("return new, rawget(_G, 'new')") == ["2", "nil"])
  }

  /// A tenth of the project's own programs, each line of which counts.
  private static let part = 10
  private static let programs: [URL] = {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    return ["Tests/scripts", "examples"].flatMap { folder in
      let found = FileManager.default.enumerator(
        at: root.appending(path: folder), includingPropertiesForKeys: nil)
      return found?.compactMap { $0 as? URL }.filter { $0.pathExtension == "lua" } ?? []
    }.enumerated().filter { $0.offset % part == 0 }.map(\.element)
  }()

  @Test("Whole programs are parsed to their end and compile with the added code for variables")
  func programs() throws {
    let vm = try LuaVM()
    let locals = try SessionLocals(vm)
    var understood = 0
    for file in Self.programs {
      var text = Array(try Data(contentsOf: file))
      if text.first == UInt8(ascii: "#") { text = Array(text.drop { $0 != 10 }) }
      guard (try? vm.load(ByteString(text), name: "x")) != nil else { continue }
      let reader = ChunkReader(text)
      let last = LuaLexer.tokens(text).last?.range.upperBound
      #expect(reader.ends.last == last, "\(file.lastPathComponent)")
      // Statements that were found where none are would not compile by themselves.
      var begin = 0
      for end in reader.ends {
        let statement = Array(text[begin..<end])
        #expect(throws: Never.self) {
          do { _ = try vm.load(ByteString(statement), name: "x") } catch let error
            as LuaError where error.description.contains("label")
          {}
        }
        begin = end
      }
      _ = try locals.load(text, chunkName: "=x")
      understood += 1
    }
    #expect(understood > 500 / Self.part)
  }

  @Test("Code behaves the same as a whole and statement by statement")
  func statements() throws {
    let program = """
      local out = {}
      local function put(...) out[#out + 1] = table.concat({ ... }, " ") end
      local a, b <const>, c = 1, "two"
      local counter = (function() local n = 0 return function() n = n + a return n end end)()
      put(counter(), counter(), b, tostring(c))
      a = 5 put(counter())
      local a = "shadow" put(a, counter())
      local t = { x = { y = 1 }, f = function(self, ...) return select("#", ...), a end }
      put(t:f(1, nil, 3)) put(t.x["y"])
      for i = 1, 3 do local a = i put(a) end
      local function even(n) if n == 0 then return true end return odd(n - 1) end
      function odd(n) if n == 0 then return false end return even(n - 1) end
      put(tostring(even(10)))
      local ok, message = pcall(function() error({ code = 7 }) end) put(tostring(ok), message.code)
      local co = coroutine.wrap(function(x) while true do x = coroutine.yield(x .. a) end end)
      put(co "1") a = "changed" put(co "2")
      local s = [[
      long]] put(#s, s:rep(2, "|"))
      local x, y = (function(...) return ... end)(1, 2) put(x, y)
      local n = 0 while n < 3 do n = n + 1 if n == 2 then break end end put(n)
      repeat local done = n > 5 n = n + 1 until done put(n)
      local z = -2 ^ 2 put(z, tostring(not z == false), ~5 & 0xF | 1 << 2, 7 // 2, "a" .. "b" .. 1)
      """
    let whole = try Lines().run(program + "\nreturn table.concat(out, ';')")
    let lines = try Lines()
    let text = Array(program.utf8)
    var begin = 0
    let ends = ChunkReader(text).ends
    #expect(ends.count > 30)
    for end in ends {
      try lines.run(String(decoding: text[begin..<end], as: UTF8.self))
      begin = end
    }
    #expect(try lines.run("return table.concat(out, ';')") == whole)
  }

  @Test("A line can continue a value that is named but not called")
  func targets() {
    func target(_ text: String) -> String {
      switch ChunkReader(Array(text.utf8)).target {
      case .local(let name, let isConstant):
        return "local " + String(decoding: name, as: UTF8.self) + (isConstant ? " const" : "")
      case .place(let place): return String(decoding: place, as: UTF8.self)
      case nil: return ""
      }
    }
    #expect(target("local f = flow.new 'f'") == "local f")
    #expect(target("local f <const> = 1") == "local f const")
    #expect(target("a.b['c'][1].d = f()") == "a.b['c'][1].d")
    #expect(target("a = f() -- why") == "a")
    for none in ["f().x = 1", "a, b = 1", "local a, b = 1", "a = 1, 2", "a = 1 b = 2", "f()", ""] {
      #expect(target(none) == "", "\(none)")
    }
  }

  @Test("A line is indented by the open blocks before it")
  func layout() {
    func layout(_ lines: [String]) -> [String] {
      var text: [UInt8] = []
      return lines.map { line in
        let layout = ChunkLayout(text)
        let typed = layout.indentation + Array(line.utf8)
        let placed = text.isEmpty ? typed : layout.placed(typed)
        text += (text.isEmpty ? [] : [10]) + placed
        return String(decoding: placed, as: UTF8.self)
      }
    }
    #expect(
      layout([
        "local f = flow.op('x', {", "run = function(ctx)", "if ctx then", "a()", "else", "b(1,",
        "2)", "end", "end,", "})",
      ]) == [
        "local f = flow.op('x', {", "  run = function(ctx)", "    if ctx then", "      a()",
        "    else", "      b(1,", "        2)", "    end", "  end,", "})",
      ])
    #expect(layout(["f(function()", "g()", "end)"]) == ["f(function()", "  g()", "end)"])
    #expect(
      layout(["x = {", "[[ a", "b", "]], -- {", "}"])
        == ["x = {", "  [[ a", "b", "]], -- {", "}"])
    #expect(layout(["while x do --[[ a", "b ]] y()", "end"]).last == "end")
  }

  @Test("Text that isn't Lua has tokens all the same")
  func lexing() {
    func tokens(_ text: String) -> [String] {
      let bytes = Array(text.utf8)
      return LuaLexer.tokens(bytes, withComments: true).map { token in
        let shown = String(decoding: bytes[token.range], as: UTF8.self)
        return token.isOpen ? shown + "…" : shown
      }
    }
    #expect(
      tokens("a.b..c...'x\\'y'[==[z]]]==]~=0x1p-3 1e+5..2::l::--[[c]]d--e")
        == [
          "a", ".", "b", "..", "c", "...", "'x\\'y'", "[==[z]]]==]", "~=", "0x1p-3", "1e+5..2",
          "::", "l", "::", "--[[c]]", "d", "--e…",
        ])
    #expect(tokens("'a\nb \"c") == ["'a", "b", "\"c…"])
    #expect(tokens("[[x") == ["[[x…"])
    #expect(tokens("'a\\z  \n b' 'a\\\nb'") == ["'a\\z  \n b'", "'a\\\nb'"])
    #expect(tokens("ä@ [=") == ["\u{FFFD}", "\u{FFFD}", "@", "[", "="])
  }
}
