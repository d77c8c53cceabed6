-- Without allow_failure the first failure ends the group and the flow with that error.
local flow, check = require "flow", require "check"
local started, after = {}, false
local FailOp = flow.op("FailOp", {
  needs = { n = "integer" }, gives = { out = "integer" },
  run = function(ctx)
    started[#started + 1] = ctx.index
    if ctx:get("n") == 2 then ctx:fail("item two", { code = 2 }) end
    ctx:set("out", 1)
  end,
})
local run = flow.new("failing"):data { list = { 1, 2, 3, 4 } }
  :add_grouped(FailOp, { input = "list", output = "outs", max_concurrent = 1 })
  :add(flow.op("NeverOp", function() after = true end))
  :run()
check.equal(run.ok, false)
check.equal(run.error.message, "item two")
check.equal(run.error.code, 2)
check.same(started, { 1, 2 })
check.equal(after, false)
check.equal(run.data.outs, nil)
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
list: {1, 2, 3, 4}
T [FlowArrayGroupDispatcher] group created: 4
T [FailOp #1] WillStart
T [FailOp #1] DidFinish: successfully
T [FailOp #2] WillStart
T [FailOp #2] DidFinish: withError: item two
T [Group] not allow failure in group. stop immediately.
T [DataBucket] end with:
list: {1, 2, 3, 4}
Flow isSuccess: false
======    Ending    ======
]])
