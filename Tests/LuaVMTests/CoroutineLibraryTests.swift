import Glibc
@_spi(Scripting) import LuaVM
import Testing

/// The replaced functions behave as those of the stand-alone interpreter.
@Suite("The coroutine library")
struct CoroutineLibraryTests {
  static let script = #"""
    local out = {}
    local function show(...)
      local t = table.pack(...)
      for i = 1, t.n do t[i] = tostring(t[i]):gsub('0x%x+', 'ADDRESS') end
      out[#out + 1] = table.concat(t, ' | ')
    end
    local co = coroutine
    -- plain use
    local a = co.create(function(...) show('in', ...) show(co.yield(1, nil, 3)) return 'end' end)
    show(co.status(a)) show(co.resume(a, 1, nil)) show(co.status(a)) show(co.resume(a, 'x', nil))
    show(co.status(a)) show(co.resume(a)) show(co.close(a)) show(co.resume(a, 1, 2, 3))
    -- errors
    show(co.resume(co.create(error), 'plain')) show(co.resume(co.create(error), {}, 2) )
    show(co.resume(co.create(function() error('located') end)))
    show(co.resume(co.create(function() error() end)))
    show(co.resume(co.create(function() local x = nil + 1 end)))
    show(pcall(co.wrap(function() error('wrapped') end)))
    show(pcall(co.wrap(function() error('wrapped', 0) end)))
    show(pcall(co.wrap(function() error({}) end)))
    show(pcall(function() co.wrap(function() error('wrapped') end)() end))
    local w = co.wrap(function() return 1 end) w()
    show(pcall(w)) show(pcall(function() w() end))
    local self
    self = co.wrap(function() return self() end) show(pcall(self))
    -- arguments
    for _, name in ipairs {'create', 'wrap', 'resume', 'status', 'close', 'isyieldable'} do
      show(name, pcall(co[name])) show(name, pcall(co[name], 1)) show(name, pcall(co[name], nil))
      show(name, pcall(function() co[name](true) end))
      show(name, pcall(function() local f = co[name] f(io.stdout) end))
    end
    show(pcall(function() co.yield(1) end)) show(select(2, co.running())) show(co.isyieldable())
    -- switches without values, at any depth of the stack
    local function deep(n, f) if n > 0 then local x, y = deep(n - 1, f) return x, y end return f() end
    for n = 0, 60 do
      local without = co.wrap(function() deep(n, co.yield) deep(n, co.yield) end)
      show(n, without()) show(n, without()) show(n, without()) show(n, pcall(without))
      local counts = co.create(function(...) co.yield() co.yield(...) return select('#', ...) end)
      show(co.resume(counts, table.unpack({}, 1, n * 5))) show(co.resume(counts))
      show(deep(n, function() return co.resume(counts) end)) show(co.resume(counts))
    end
    -- running, normal, dead
    show(pcall(co.close, co.running())) show(pcall(function() co.close(co.running()) end))
    local outer
    outer = co.create(function()
      local inner = co.create(function()
        show(co.status(outer)) show(co.resume(outer)) show(pcall(co.close, outer))
        show(pcall(function() co.close(outer) end))
        show(co.status(co.running())) show(co.resume(co.running()))
      end)
      show(co.resume(inner)) show(co.isyieldable())
    end)
    show(co.resume(outer)) show(co.status(outer))
    show(pcall(function() co.close(co.create(print), 5) end))
    -- closing
    local function closing(f) return setmetatable({}, {__close = f}) end
    local c = co.create(function()
      local x <close> = closing(function(_, e) show('closing x', e) end)
      local y <close> = closing(function(_, e) show('closing y', e) error('from y', 0) end)
      co.yield()
    end)
    co.resume(c) show(co.close(c)) show(co.status(c)) show(co.close(c))
    c = co.create(function() local x <close> = closing(function() co.yield('in close') end) return 5 end)
    show(co.resume(c)) show(co.resume(c)) show(co.status(c))
    c = co.create(function() local x <close> = closing(function(_, e) show('got', e) end) error('e', 0) end)
    show(co.resume(c)) show(co.status(c)) show(co.close(c))
    w = co.wrap(function() local x <close> = closing(function(_, e) show('w', e) error('w2', 0) end) error('w1', 0) end)
    show(pcall(w))
    c = co.create(print) show(co.close(c)) show(co.status(c)) show(co.resume(c))
    c = co.create(function() local x <close> = closing(function() co.close(c) end) co.yield() end)
    co.resume(c) show(co.close(c))
    -- across C
    show(co.resume(co.create(function() table.sort({1, 2}, co.yield) end)))
    show(co.resume(co.create(function() return ('x'):gsub('.', co.yield) end)))
    -- limits
    show(co.resume(co.create(function() return table.unpack({}, 1, 100000) end)) == true)
    local function deep(n) return n == 0 and 'bottom' or co.wrap(deep)(n - 1) end
    show(deep(100))
    local function endless() return co.wrap(endless)() end
    local ok, message = pcall(endless) show(ok, message:match('C stack overflow'))
    -- hooks
    show(pcall(debug.sethook, print, 5)) show(pcall(function() debug.sethook(1, 2, 3) end))
    show(pcall(function() debug.sethook('x', 'l') end))
    local count = 0
    debug.sethook(function(e) count = count + 1 end, '', 10) for i = 1, 1000 do end
    show(debug.gethook() ~= nil, select(2, debug.gethook())) show(select('#', debug.sethook()))
    show(count > 10, debug.gethook())
    local h = co.create(function() for i = 1, 100 do end end)
    local lines = 0 debug.sethook(h, function() lines = lines + 1 end, 'l') co.resume(h) show(lines > 0)
    show(pcall(os.exit, {})) show(pcall(function() os.exit('x') end))
    return table.concat(out, '\n')
    """#

  @Test("The coroutine library behaves as in the standalone interpreter")
  func behavesAsTheStandaloneInterpreter() throws {
    let path = "/tmp/flowlua-coroutine-library-\(getpid()).lua"
    let file = try #require(fopen(path, "w"))
    fputs("io.write((function() " + Self.script + " end)())\n", file)
    fclose(file)
    defer { unlink(path) }
    guard let expected = standardOutput(of: "lua5.4 \(path) 2>&1") else { return }
    #expect(expected.contains("in | 1 | nil"))
    let host = try TestHost(LuaConfiguration(refusesExit: false))
    let chunk = try host.vm.load(
      ByteString("return (function() " + Self.script + " end)()"), name: "" + path)
    let own = try host.vm.call(chunk).map { try host.vm.tostring($0).description }.joined()
    expectSameLines(own, expected)
  }

  private func expectSameLines(_ own: String, _ expected: String) {
    let ownLines = own.split(separator: "\n", omittingEmptySubsequences: false)
    let expectedLines = expected.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(ownLines.count == expectedLines.count)
    for (own, expected) in zip(ownLines, expectedLines) { #expect(own == expected) }
  }
}
