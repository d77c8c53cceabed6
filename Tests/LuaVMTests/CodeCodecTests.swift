@_spi(Scripting) import LuaVM
import Testing

/// Functions from one state into another.
@Suite("Transfer of functions between states", .alsoWithout(.tableLayout))
struct CodeCodecTests {
  let home: TestHost
  let away: TestHost

  init() throws {
    home = try TestHost()
    away = try TestHost()
  }

  func function(_ script: String) throws -> LuaReference {
    guard
      case .reference(let function)? = try home.vm.call(home.load(script, name: "script.lua"))
        .first
    else { throw TestProblem("no function") }
    return function
  }

  /// Lets a script's function travel and calls it there.
  func called(_ script: String, _ arguments: [LuaValue] = []) throws -> String {
    let package = try home.vm.pack(try function(script))
    let results = try away.vm.call(try away.vm.unpack(package), arguments)
    #expect(home.vm.stackDepth == 0 && away.vm.stackDepth == 0)
    return try results.map { try away.vm.tostring($0).description }.joined(separator: " ")
  }

  @Test("Upvalues are transferred by value")
  func upvaluesGoByValue() throws {
    #expect(
      try called(
        """
        local a, b, c, d, e = 1, 2.5, 'text', true, nil
        local list = {1, 2, {x = 'deep'}}
        return function(y) return a + y, b, c, d, e, #list, list[3].x end
        """, [.integer(41)]) == "42 2.5 text true nil 3 deep")
  }

  @Test("Upvalues and functions keep sharing their tables")
  func tablesAreSharedAmongUpvaluesAndFunctions() throws {
    #expect(
      try called(
        """
        local t = {} t.self = t
        local same = t
        local function other() return t end
        return function() return t == same, t.self == t, other() == t end
        """) == "true true true")
  }

  @Test("Recursive functions and common variables are kept")
  func recursionAndVariablesInCommon() throws {
    #expect(
      try called(
        """
        local function fact(n) return n < 2 and 1 or n * fact(n - 1) end
        local even, odd
        function even(n) if n == 0 then return true end return odd(n - 1) end
        function odd(n) if n == 0 then return false end return even(n - 1) end
        local count = 0
        local function add() count = count + 1 end
        local function get() return count end
        return function() add() add() return fact(10), even(10), odd(10), get(), count end
        """) == "3628800 true false 2 2")
  }

  @Test("A function decoded twice shares nothing")
  func unpackedTwiceItSharesNothing() throws {
    let package = try home.vm.pack(
      try function("local n = 0 return function() n = n + 1 return n end"))
    let first = try away.vm.unpack(package), second = try away.vm.unpack(package)
    _ = try away.vm.call(first)
    _ = try away.vm.call(first)
    guard case .integer(1)? = try away.vm.call(second).first else {
      Issue.record("the variable is shared")
      return
    }
  }

  @Test("Library functions are transferred by name")
  func librariesGoByName() throws {
    #expect(
      try called(
        """
        local insert, s, m, G, p, out = table.insert, string, math, _G, print, io.stdout
        return function()
          local t = {} insert(t, 5)
          return t[1], s.upper('x'), m == math, G == _G, p == print, out == io.stdout,
            insert == table.insert, ('y'):rep(2)
        end
        """) == "5 X true true true true true yy")
  }

  @Test("Modules are transferred by name")
  func modulesGoByName() throws {
    for host in [home, away] {
      try host.run(
        """
        package.preload.shapes = function()
          local M = {Point = {}}
          M.Point.__index = M.Point
          function M.Point.new(x) return setmetatable({x = x}, M.Point) end
          function M.area(a) return a * a end
          return M
        end
        package.preload.only = function() return function() return 'only' end end
        """)
    }
    #expect(
      try called(
        """
        local shapes, only = require 'shapes', require 'only'
        local area, Point = shapes.area, shapes.Point
        local p = Point.new(3)
        return function()
          local m = require 'shapes'
          return m == shapes, area == m.area, area(3), only(), only == require 'only',
            getmetatable(p) == m.Point, p.x
        end
        """) == "true true 9 only true true 3")
    let lost = try home.vm.pack(
      try function(
        "package.loaded.lost = {} local l = require 'lost' return function() return l end"))
    do {
      _ = try away.vm.unpack(lost)
      Issue.record("a module was found that isn't there")
    } catch let error as LuaError {
      #expect(error.description.hasPrefix("module 'lost' not found:"))
    }
    let field = try home.vm.pack(
      try function("math.mine = {} local l = math.mine return function() return l end"))
    do {
      _ = try away.vm.unpack(field)
      Issue.record("a field was found that isn't there")
    } catch let error as LuaError {
      #expect(error.description == "module 'math' has no 'mine' in a worker")
    }
  }

  @Test("Objects keep the class of their module")
  func objectsHaveTheClassOfTheirModule() throws {
    for host in [home, away] {
      try host.run(
        """
        package.preload.bank = function()
          local Account = {} Account.__index = Account
          function Account:add(n) self.sum = self.sum + n return self.sum end
          function Account:__close() self.sum = 'closed' end
          return {Account = Account, weak = {__mode = 'k'}}
        end
        """)
    }
    #expect(
      try called(
        """
        local bank = require 'bank'
        local account = setmetatable({sum = 1}, bank.Account)
        local both = {account, account}
        account.again = setmetatable({account}, bank)
        local weak = setmetatable({[{}] = 1}, bank.weak)
        return function()
          collectgarbage()
          local bank = require 'bank'
          local sum = account:add(2)
          do local a <close> = account end
          return sum, account.sum, getmetatable(account) == bank.Account, both[1] == account,
            both[2] == account, getmetatable(account.again) == bank, account.again[1] == account,
            getmetatable(weak) == bank.weak, next(weak)
        end
        """) == "3 closed true true true true true true nil")
  }

  @Test("Errors name the file and the line")
  func errorsNameFileAndLine() throws {
    let package = try home.vm.pack(try function("\nreturn function()\n  error('bad')\nend"))
    do {
      _ = try away.vm.call(try away.vm.unpack(package))
      Issue.record("nothing was raised")
    } catch let error as LuaError {
      #expect(error.description == "script.lua:3: bad")
    }
  }

  static let refused: [(String, String)] = [
    (
      "local file = io.tmpfile() return function() return file end",
      "upvalue 'file' of function at script.lua:1 is a userdata (file): it can't go to a worker; "
        + "open it inside the function"
    ),
    (
      "local config = {list = {1, {handle = io.tmpfile()}}}\nreturn function() return config end",
      "upvalue 'config' of function at script.lua:2 has a userdata (file) at config.list[2].handle: "
        + "it can't go to a worker; open it inside the function"
    ),
    (
      "local co = coroutine.create(print) local function f() return co end\n"
        + "return function() return f() end",
      "upvalue 'co' of function at script.lua:1 is a coroutine: it can't go to a worker; "
        + "make it inside the function"
    ),
    (
      "local it = ('x'):gmatch('.') return function() return it end",
      "upvalue 'it' of function at script.lua:1 is a C function: it can't go to a worker; "
        + "require its module inside the function"
    ),
    (
      "local task = S.spawn(function() end) local a = {task} return function() return a end",
      "upvalue 'a' of function at script.lua:1 has a userdata (task) at a[1]: it can't go to a "
        + "worker; make it inside the function"
    ),
    (
      "local a, t = 1, {[coroutine.create(print)] = 1} return function() return a, t end",
      "upvalue 't' of function at script.lua:1 has a coroutine as a key of t: it can't go to a "
        + "worker; make it inside the function"
    ),
    (
      "local o = setmetatable({}, {__name = 'mine', __index = _G}) return function() return o end",
      "upvalue 'o' of function at script.lua:1 is a table (mine) whose metatable no module holds: "
        + "it can't go to a worker; keep the metatable in a module, or make it inside the function"
    ),
    (
      "local o = {{key = setmetatable({}, _G)}} return function() return o end",
      "upvalue 'o' of function at script.lua:1 has a table at o[1].key whose metatable no module "
        + "holds: it can't go to a worker; keep the metatable in a module, or make it inside the "
        + "function"
    ),
    (
      "return ('x'):gmatch('.')",
      "a C function can't go to a worker; require its module inside the function"
    ),
  ]

  @Test("A value that can't be transferred is named", arguments: refused)
  func whatCantGoIsNamed(_ script: String, _ expected: String) throws {
    do {
      _ = try home.vm.pack(try function(script))
      Issue.record("it went")
    } catch let error as EncodeError {
      #expect(error.description == expected)
    }
    #expect(home.vm.stackDepth == 0)
  }

  @Test("A later assignment to an upvalue is found")
  func anAssignmentSinceIsFound() throws {
    let function = try function(
      """
      local n, t, s = 1, {a = {b = 1}, 1, 2}, 'x'
      local function inner() return s end
      function set(code) load(code)(function(v) n = v end, t, function(v) s = v end) end
      return function() return n, t, inner() end
      """)
    let package = try home.vm.pack(function)
    func change() throws -> String {
      guard let change = try home.vm.change(of: function, since: package) else { return "none" }
      return "\(change.upvalue) at \(change.function)"
    }
    #expect(try change() == "none")
    try home.run("set('local n = ... n(2)')")
    #expect(try change() == "n at script.lua:4")
    try home.run("set('local n, t = ... n(1) t.a.b = 2')")
    #expect(try change() == "t at script.lua:4")
    try home.run("set('local _, t = ... t.a.b = 1 t[3] = 3')")
    #expect(try change() == "t at script.lua:4")
    // Equal content in another order is no change.
    try home.run(
      "set('local _, t = ... t[3] = nil for i = 1, 50 do t[{}] = i t[i .. 0] = i end "
        + "for k in pairs(t) do if k ~= 1 and k ~= 2 and k ~= [[a]] then t[k] = nil end end')")
    #expect(try change() == "none")
    try home.run("set('local _, _, s = ... s[[y]]')")
    #expect(try change() == "s at script.lua:2")
    try home.run("set('local _, t, s = ... s(coroutine.create(print))')")
    #expect(try change() == "s at script.lua:2")
    try home.run("set('local _, t, s = ... s[[x]]')")
    #expect(try change() == "none")
  }

  @Test("Globals of a worker are guarded")
  func globalsOfAWorkerAreGuarded() throws {
    try away.run("package.preload.old = function() shared = 'by a module' return {} end")
    try away.vm.guardGlobals()
    let unknown = try home.vm.pack(
      try function("later = 1 return function()\n return math.pi > 3 and later end"))
    do {
      _ = try away.vm.call(try away.vm.unpack(unknown))
      Issue.record("an unknown global was read")
    } catch let error as LuaError {
      #expect(
        error.description
          == "script.lua:2: global 'later' isn't known in a worker: make it local")
    }
    let assigned = try home.vm.pack(try function("return function() later = 1 end"))
    do {
      _ = try away.vm.call(try away.vm.unpack(assigned))
      Issue.record("a global was set")
    } catch let error as LuaError {
      #expect(
        error.description == "script.lua:1: can't set global 'later' in a worker: make it local")
    }
    #expect(
      try called(
        """
        local G = _G
        return function() require 'old' return shared, G == _G, _ENV == _G, pcall(function()
          return _G.other end) end
        """) == "by a module true true false script.lua:3: global 'other' isn't known in a worker: "
        + "make it local")
  }

  @Test("A failure of any allocation is an error")
  func everyAllocationMayFail() throws {
    for host in [home, away] { try host.run("package.loaded.module = {}") }
    let function = try function(
      """
      local t, n = {1, {2}, k = 'v', [true] = 1}, 0
      local o = setmetatable({}, package.loaded.module)
      local function f() n = n + 1 return f, t, o, table.insert, _G end
      local many = {} for i = 1, 12 do many[i] = function() return i, many end end
      return function() return f, n, many end
      """)
    var package = try home.vm.pack(function)
    try MemoryTests.failEach(home, "pack") { package = try home.vm.pack(function) }
    try MemoryTests.failEach(home, "change") {
      let change = try home.vm.change(of: function, since: package)
      #expect(change == nil)
    }
    try MemoryTests.failEach(away, "unpack") { _ = try away.vm.unpack(package) }
    let fresh = try TestHost()
    try MemoryTests.failEach(fresh, "guard") { try fresh.vm.guardGlobals() }
  }
}
