-- Released runs leave nothing in memory.
local flow = require "flow"
local SetOp = flow.op("SetOp", function(ctx) ctx:set("t", {}) ctx:log("x") end)
local blueprint = flow.new("many"):add(SetOp)
local function measure()
  for _ = 1, 2000 do assert(blueprint:run().ok) end
  collectgarbage() collectgarbage()
  return collectgarbage("count")
end
measure()
local before = measure()
local after = measure()
assert(after < before + 500, ("%.0f KB, then %.0f KB"):format(before, after))
