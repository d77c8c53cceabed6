-- LUA_PATH.
local host = require "host"
local function with(environment)
  host.same_script("print(x, package.path)", {}, { environment = environment })
end
with { LUA_PATH = "./?.x;;" }
with { LUA_PATH = "./?.x", LUA_PATH_5_4 = "./?.y;;" }
