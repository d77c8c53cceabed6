-- The variables of a failing op are closed before it ends, and closing may wait.
local flow, check = require "flow", require "check"
local closed = {}
local function closing(name, fn)
  return setmetatable({}, { __close = function(_, err)
    if fn then fn() end
    closed[#closed + 1] = name .. ":" .. tostring(err)
  end })
end
local run = flow.op("FailOp", function()
  local outer <close> = closing("outer", function() flow.sleep(0.001) end)
  local inner <close> = closing "inner"
  flow.sleep(0.001)
  error("orig", 0)
end):run()
check.equal(run.error.message, "orig")
check.same(closed, { "inner:orig", "outer:orig" })
-- An error while closing takes the place of the first, as it does for Lua.
local second = flow.op("CloseOp", function()
  local value <close> = closing("never", function() error("while closing", 0) end)
  flow.sleep(0.001)
  error("orig", 0)
end):run()
check.equal(second.error.message, "while closing")
