-- Output of the host and of Lua appears in order and completely.
local host = require "host"
host.same_script [[
  io.write("a", 1, 2.5, "\n")
  print("b")
  io.stdout:write("c\n")
  io.stdout:setvbuf("full")
  print(("x"):rep(100000):len())
  io.write(("line\n"):rep(5000))
  io.stderr:write("on stderr\n")
  io.write("bytes \0\1\255 end")
]]
