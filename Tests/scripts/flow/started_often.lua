-- A flow can be started many times, and each run has its own data, log and id.
local flow, check = require "flow", require "check"
local CountOp = flow.op("CountOp", function(ctx) ctx:set("n", ctx:get("n") + 1) end)
local count = flow.new("count"):data { n = 0 }:add(CountOp):add(CountOp)
local ids = {}
for i = 1, 100 do
  local run = count:run { i = i }
  check.equal(run.data.n, 2)
  check.equal(run.data.i, i)
  check.equal(run.name, "count")
  assert(run.id ~= nil and not ids[run.id])
  ids[run.id] = true
end
