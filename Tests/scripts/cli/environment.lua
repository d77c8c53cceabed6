-- LUA_PATH, LUA_CPATH, LUA_INIT and their versioned names have the effects of lua5.4.
local host = require "host"
local function with(environment, arguments)
  host.same_script("print(x, package.path, package.cpath, ...)", arguments, { environment = environment })
  host.same_arguments({ "-E", "-e", "print(x, package.path, package.cpath)" },
    { environment = environment })
end
with { LUA_PATH = "./?.x;;" }
with { LUA_PATH = "./?.x", LUA_PATH_5_4 = "./?.y;;" }
with { LUA_CPATH = "./?.x;;" }
with { LUA_CPATH = "./?.x", LUA_CPATH_5_4 = "./?.y;;" }
with { LUA_INIT = "x = 1" }
with({ LUA_INIT = "x = arg[1]" }, { "argument" })
with { LUA_INIT = "x = 1", LUA_INIT_5_4 = "x = 2" }
with { LUA_INIT = "x = 1", LUA_INIT_5_4 = "" }
with { LUA_INIT = "error 'in init'" }
with { LUA_INIT = "x = = 1" }
with { LUA_INIT_5_4 = "error 'in init'" }
with { LUA_INIT = "@/no/such/file" }

local name = os.tmpname()
local file = assert(io.open(name, "w"))
file:write "x = 'from a file'"
file:close()
with { LUA_INIT = "@" .. name }
os.remove(name)
