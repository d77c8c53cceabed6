-- The coroutine library behaves like Lua's.
local host = require "host"
host.same_script [[
  local co = coroutine.create(function(...)
    local n = select("#", ...)
    while true do n = n + select("#", coroutine.yield(n, ...)) end
  end)
  print(coroutine.status(co), coroutine.resume(co, 1, nil))
  print(coroutine.status(co), coroutine.resume(co, nil, nil, nil))
  print(coroutine.close(co), coroutine.status(co))
  print(coroutine.resume(co))
  print(coroutine.close(coroutine.create(print)))

  local failing = coroutine.create(function()
    local guard <close> = setmetatable({}, { __close = function(_, e) print("closing", e) end })
    coroutine.yield()
    error("failed", 0)
  end)
  print(coroutine.resume(failing))
  print(coroutine.resume(failing))
  print(coroutine.status(failing), coroutine.close(failing))

  local closed = coroutine.create(function()
    local guard <close> = setmetatable({}, { __close = function() error("in close", 0) end })
    coroutine.yield()
  end)
  coroutine.resume(closed)
  print(coroutine.close(closed))

  local outer
  outer = coroutine.create(function()
    local inner = coroutine.create(function() print(coroutine.status(outer)) end)
    print(coroutine.resume(inner))
    print(coroutine.resume(outer))
    print(pcall(coroutine.close, outer))
    print(pcall(coroutine.close, coroutine.running()))
  end)
  print(coroutine.resume(outer))
  print(pcall(coroutine.yield))
  print(pcall(coroutine.resume, 1), pcall(coroutine.create), pcall(coroutine.wrap, 1))
  print(pcall(coroutine.status, nil), pcall(coroutine.close, nil), pcall(coroutine.isyieldable, 1))
  print(coroutine.isyieldable(coroutine.create(print)))
  print(select(2, coroutine.running()))
  for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do print(i) end
  print(select("#", coroutine.resume(coroutine.create(function() return nil, nil end))))
  local deep = coroutine.wrap(function() table.sort({ 1, 2 }, function() coroutine.yield() end) end)
  print(pcall(deep))
  local function nest(n) if n == 0 then return "bottom" end return coroutine.wrap(nest)(n - 1) end
  print(nest(100))
  print(pcall(nest, 250))
]]
host.same_script "coroutine.wrap(function() coroutine.wrap(function() error 'deep' end)() end)()"
host.same_script "coroutine.wrap(function() coroutine.wrap(function() error {} end)() end)()"
host.same_script "coroutine.wrap(function() error('no place', 0) end)()"
host.same_script "local f = coroutine.wrap(print) f() f()"
host.same_script "coroutine.yield(1)"
