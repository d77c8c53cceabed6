@_spi(Scripting) import LuaVM
import Testing

/// The text of a stack equals debug.traceback's, which is liblua's own.
@Suite("Tracebacks", .alsoWithout(.tableLayout))
struct TracebackTests {
  let host: TestHost

  init() throws {
    host = try TestHost()
    let vm = host.vm
    try host.install(
      "T",
      [
        "traceback": { call in call.answer(.string(vm.traceback(level: 2))) },
        "of": { call in
          guard let thread = LuaCoroutine(try call.value(1)) else {
            throw LuaError(.argument, "no coroutine")
          }
          return call.answer(.string(thread.traceback))
        },
      ])
    _ = try host.run(
      """
      local traceback, count = T.traceback, 0
      function T.compare()
        local ours, own = traceback(), debug.traceback(nil, 1)
        if ours ~= own then error(("%q\\nisn't\\n%q"):format(ours, own), 0) end
        count = count + 1
      end
      function T.count() return count end
      -- Calls a function that has no name in the code.
      function T.call(f, ...) return (f(...)) end
      """)
  }

  @Test("A traceback reads as Lua's own for every way in which functions are called")
  func calls() throws {
    _ = try host.run(
      #"""
      local compare, call = T.compare, T.call
      local function upvalue() compare() end
      function global() upvalue() end
      local object = { field = function() global() end }
      function object:method() self.field() end
      local meta = setmetatable({}, {
        __index = function() object:method() end, __add = function() object:method() end,
        __close = function() object:method() end, __call = function() object:method() end,
        __lt = function() object:method() end, __concat = function() object:method() end,
        __tostring = function() object:method() return "" end,
      })
      local function iterator(_, i) object:method() if i == 0 then return 1 end end
      local function tail() return object:method() end
      local function closing() local x <close> = meta end
      local function looping() for _ in iterator, nil, 0 do end end
      for _, each in ipairs {
        compare, upvalue, global, object.field, tail, closing, looping,
        function() return meta.x end, function() return meta + 1 end, function() meta() end,
        function() return meta < 1 end, function() return meta .. "" end,
        function() tostring(meta) end, function() pcall(global) end,
        function() table.sort({ 1, 2 }, function() global() end) end,
        function() string.gsub("a", "a", function() global() end) end,
        function() load("global()", "=chunk")() end, function() load("global()", "text")() end,
        function() coroutine.wrap(global)() end, function() xpcall(error, compare) end,
        function() pcall(pcall, error) dofile = global dofile() dofile = nil end,
      } do
        each()
        call(each)
        pcall(each)
        xpcall(each, print)
        coroutine.wrap(each)()
        coroutine.resume(coroutine.create(function() call(each) end))
      end
      """#)
    #expect(try host.text("return T.count() > 126") == "true")
  }

  @Test("A traceback of a deep stack leaves out the same levels as Lua's own")
  func depths() throws {
    _ = try host.run(
      """
      local function deep(n)
        if n > 0 then deep(n - 1) else T.compare() end
        return n
      end
      for n = 0, 60 do deep(n) end
      deep(5000)
      -- Without room for more on its stack.
      local _, text = xpcall(function() local function f() return 1 + f() end f() end,
        function() T.compare() return "compared" end)
      assert(text == "compared")
      """)
    #expect(try host.text("return T.count()") == "63")
  }

  @Test("A function has the name in a traceback that it has in package.loaded at that time")
  func names() throws {
    _ = try host.run(
      #"""
      local compare, call, loaded = T.compare, T.call, package.loaded
      local function f() compare() end
      local function check() call(f) f() end
      check()
      loaded.m = { f = f } check()
      loaded.m.f = nil check()
      loaded.m.g = f check()
      loaded.m = f check()
      loaded.m = nil check()
      loaded.m = { inner = { f = f } } check()
      loaded.m = { [1] = f, [true] = f, [f] = 1, [1.5] = f } check()
      loaded[1] = f check()
      loaded[1] = { f = f } check()
      loaded[1] = nil
      later = f check()
      loaded.m = { f = f } check()
      later = nil check()
      for i = 1, 100 do loaded.m["f" .. i] = i end check()
      loaded.m = setmetatable({}, { __index = { f = f }, __pairs = error }) check()
      loaded.m = nil
      for _, name in ipairs {
        "_G.", "_G.x", "_G\0", "_G\0.x", "\0", "", ".", "a\0b", "_Gx", "_", "a.b", ("long"):rep(40),
      } do
        loaded[name] = f check()
        loaded[name] = { f = f } check()
        loaded[name] = { [""] = f } check()
        loaded[name] = { ["x\0y"] = f } check()
        loaded[name] = { ["_G.x"] = f } check()
        loaded[name] = { [("long"):rep(40)] = f } check()
        loaded[name] = nil
        _G[name] = f check()
        _G[name] = nil
      end
      -- Functions of C: without upvalues, with one, and one that looks like another.
      local gsub, wrap = string.gsub, coroutine.wrap
      local function calls() gsub("a", "a", f) call(gsub, "a", "a", f) wrap(f)() call(wrap(f)) end
      calls()
      string.gsub = nil calls()
      loaded.c = { gsub = gsub, wrap = wrap(f) } calls()
      loaded.c = gsub calls()
      string.gsub, loaded.c = gsub, nil
      -- Other values that can be there.
      local registry = debug.getregistry()
      for _, other in ipairs { false, 5, "text", {}, setmetatable({}, { __index = loaded }), { m = { f = f } } } do
        registry._LOADED = other
        check()
      end
      registry._LOADED = nil check()
      registry._LOADED = loaded check()
      """#)
    #expect(try host.text("return T.count() > 190") == "true")
  }

  @Test("Of several names of a function a traceback has the same as Lua's own")
  func order() throws {
    _ = try host.run(
      #"""
      local compare, call, loaded, seed = T.compare, T.call, package.loaded, 1
      local function random(n)
        seed = seed * 16807 % 2147483647
        return seed % n + 1
      end
      local functions, places = {}, { _G, string, loaded }
      for i = 1, 8 do functions[i] = function() compare() end end
      for i = 1, 4 do
        places[#places + 1] = {}
        loaded["module" .. i] = places[#places]
      end
      for _ = 1, 2000 do
        local place = places[random(#places)]
        local key = "key" .. random(20)
        place[key] = random(3) > 1 and functions[random(#functions)] or nil
        if random(50) == 1 then loaded["module" .. random(4)] = nil end
        if random(50) == 1 then loaded["module" .. random(4)] = places[random(#places)] end
        call(functions[random(#functions)])
      end
      """#)
    #expect(try host.text("return T.count()") == "2000")
  }

  @Test("A traceback of another coroutine reads as Lua's own")
  func coroutines() throws {
    _ = try host.run(
      #"""
      local function same(co)
        local ours, own = T.of(co), debug.traceback(co)
        if ours ~= own then error(("%q\nisn't\n%q"):format(ours, own), 0) end
      end
      local function waits(n) if n > 0 then waits(n - 1) end coroutine.yield() end
      for n = 0, 30 do
        local co = coroutine.create(waits)
        same(co)
        coroutine.resume(co, n)
        same(co)
        while coroutine.resume(co) do same(co) end
        same(co)
      end
      local failed = coroutine.create(function() local function f() error("x") end f() end)
      coroutine.resume(failed)
      same(failed)
      -- One that has no room for another value.
      local full = coroutine.create(function() local function f() return 1 + f() end f() end)
      coroutine.resume(full)
      same(full)
      """#)
  }
}
