-- A wait in a C callback during a wait of the main chunk is an error that names the cause.
local flow, check = require "flow", require "check"
local SortOp = flow.op("SortOp", function()
  flow.sleep(0.001) -- from here on the main chunk waits for the run
  table.sort({ 2, 1 }, function(a, b) flow.sleep(0.001) return a < b end)
end)
local run = flow.new("sort"):add(SortOp):run()
check.equal(run.ok, false)
check.contains(run.error.message, "attempt to await across a C-call boundary")
-- It can be caught, and the op continues.
run = flow.op("CatchOp", function(ctx)
  flow.sleep(0.001)
  ctx:set("ok", (pcall(table.sort, { 2, 1 }, function(a, b) flow.sleep(0.001) return a < b end)))
  flow.sleep(0.001)
  ctx:set("went_on", true)
end):run()
assert(run.ok, run.error)
check.equal(run.data.ok, false)
check.equal(run.data.went_on, true)
