-- The release binary has Lua's library within itself, and links only the C library. C modules find Lua's functions in it.
local host = require "host"

local function lines(tool, option)
  local result = host.run(tool, { option, host.binary })
  assert(result.status == 0, result.stderr)
  return result.stdout:gmatch("[^\n]+")
end

local loaded = {}
for line in lines("readelf", "--dynamic") do
  local name = line:match("%(NEEDED%).*%[(.-)%]")
  if name then loaded[#loaded + 1] = name end
end
-- With FLOWLUA_SHARED_LUA=1 it is built with the shared library.
local is_shared = table.concat(loaded, " "):find("liblua5.4.so.0", 1, true)
for _, name in ipairs(loaded) do
  assert(is_shared and name:find("^liblua5%.4%.so") or name:find("^libc%.so")
    or name:find("^libm%.so") or name:find("^ld%-linux"), name)
end

local exported = {}
for line in lines("nm", "--dynamic") do exported[line:match(" T (%S+)$") or ""] = true end
for line in lines("nm", "--defined-only") do
  local name = line:match(" T (luaL?_%w+)$")
  assert(not name or exported[name], name)
end
assert(exported.lua_resume)
assert(is_shared or exported.lua_newstate and exported.luaL_newstate and exported.luaopen_base)
