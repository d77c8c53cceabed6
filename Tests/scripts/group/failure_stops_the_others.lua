-- After a failure the running items are stopped at their waits, and no more items start.
local flow, check = require "flow", require "check"
local went_on, started = false, 0
local FailOp = flow.op("FailOp", {
  needs = { n = "integer" },
  run = function(ctx)
    started = started + 1
    if ctx:get("n") == 3 then flow.sleep(0.001) ctx:fail("item three") end
    flow.sleep(60)
    went_on = true
  end,
})
local before = flow.now()
local run = flow.new("failing"):data { list = { 1, 2, 3, 4, 5 } }
  :add_grouped(FailOp, { input = "list", max_concurrent = 3 }):run()
check.equal(run.ok, false)
check.equal(run.error.message, "item three")
check.equal(started, 3)
check.equal(went_on, false)
assert(flow.now() - before < 30)
local summary = check.masked(run:summary())
check.contains(summary, [[
T [FailOp #3] DidFinish: withError: item three
T [Group] not allow failure in group. stop immediately.
]], "[FailOp #1] DidFinish: cancelled: group failed\n", "[FailOp #2] DidFinish: cancelled: group failed\n")
check.lacks(summary, "#4", "all finished")
