-- Sends a list of arg[1] numbers to a worker ten times. Prints ns a number.
local flow = require "flow"
local n = tonumber(arg[1])
local list = {}
for i = 1, n do list[i] = i end
local LengthOp = flow.op("LengthOp", {
  needs = { list = "any" }, gives = { length = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("length", #ctx:get "list") end,
})
local blueprint = flow.new("list"):data { list = list }
for _ = 1, 10 do blueprint:add(LengthOp) end
collectgarbage()
local before = flow.now()
local run = blueprint:run()
local elapsed = flow.now() - before
assert(run.ok and run.data.length == n, run.error)
print(elapsed / n / 10 * 1e9)
