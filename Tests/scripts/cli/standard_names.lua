-- A script sees only the standard globals.
local host = require "host"
host.same_script [[
  local names = {}
  for name in pairs(_G) do names[#names + 1] = name end
  table.sort(names)
  print(#names, table.concat(names, " "))
  print(rawget(_G, "flow"))
]]
