-- A flow of arg[1] adds is built and released. Prints ns an add.
local flow = require "flow"
local n = tonumber(arg[1])
local NothingOp = flow.op("NothingOp", function() end)
collectgarbage()
local before = flow.now()
local blueprint = flow.new("build")
for _ = 1, n do blueprint:add(NothingOp) end
blueprint = nil -- luacheck: ignore 311
collectgarbage()
print((flow.now() - before) / n * 1e9)
