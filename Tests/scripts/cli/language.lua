-- Plain Lua behaves as plain Lua.
local host = require "host"
host.same_script [[
  print(_VERSION, math.maxinteger, math.pi, 1 // 0.0, -1 % 3, 7 // 2, 2^53, 1e100, 0x7fp-3)
  print(string.format("%q %5.2f %x", "a\0b\n", 3.14159, 255), #"äöü", utf8.len "äöü")
  print(select(-1, 1, 2, 3), table.unpack({ 1, 2, 3 }, 2))
  print(pcall(error, "x"), (pcall(error)))
  goto done
  print "never"
  ::done::
  print(collectgarbage("incremental"), collectgarbage("generational"))
  print(os.getenv "NO_SUCH_VARIABLE", os.time { year = 2000, month = 1, day = 1, hour = 12 })
  print(coroutine.isyieldable(), coroutine.running())
  local co = coroutine.wrap(function(...)
    print(coroutine.isyieldable(), ...)
    local x = coroutine.yield(1, 2)
    print(x)
    return "end"
  end)
  print(co("a", nil, "b"))
  print(co("c"))
  print(pcall(co))
]]
