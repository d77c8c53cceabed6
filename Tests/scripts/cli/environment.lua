-- LUA_INIT and LUA_PATH.
local host = require "host"
local function with(environment)
  host.same_script("print(x, package.path)", {}, { environment = environment })
end
with { LUA_INIT = "x = 'from LUA_INIT'", LUA_INIT_5_4 = "x = 'from LUA_INIT_5_4'" }
with { LUA_INIT_5_4 = "error 'in init'" }
with { LUA_INIT_5_4 = "@/no/such/file" }
with { LUA_PATH = "./?.x;;" }
with { LUA_PATH = "./?.x", LUA_PATH_5_4 = "./?.y;;" }
