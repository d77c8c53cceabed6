-- The methods of ctx work in a worker as on the main thread, and the log has their lines in order.
-- expect-stdout:
--| ====== Flow Summary ======
--| <time> [DataBucket] start with:
--| base: 10
--| ns: {1, 2}
--| other: 1
--| <time> [OneOp] WillStart
--| <time> [OneOp] OneOp 1 nil 10
--| <time> [DataBucket] add for a: {1, 2}
--| <time> [OneOp] between
--| <time> [DataBucket] replace for a: {1, 2} -> 3
--| <time> [DataBucket] remove for a
--| <time> [OneOp] deferred
--| <time> [OneOp] DidFinish: successfully
--| <time> [FlowArrayGroupDispatcher] group created: 2
--| <time> [ItemOp #1] WillStart
--| <time> [ItemOp #1] ItemOp #1 1 1 11
--| <time> [ItemOp #1] deferred 1
--| <time> [ItemOp #1] DidFinish: successfully
--| <time> [ItemOp #2] WillStart
--| <time> [ItemOp #2] ItemOp #2 1 2 12
--| <time> [ItemOp #2] deferred 2
--| <time> [ItemOp #2] DidFinish: successfully
--| <time> [FlowArrayGroupDispatcher] all finished. output size: 2
--| <time> [DataBucket] add for out: {11, 12}
--| <time> [DataBucket] end with:
--| base: 10
--| ns: {1, 2}
--| other: 1
--| out: {11, 12}
--| Flow isSuccess: true
--| ======    Ending    ======
-- `ctx` in a worker has its methods, and the run's log shows their effects as on the main thread.
local flow = require "flow"
local check = require "check"
local OneOp = flow.op("OneOp", {
  needs = { base = "integer" }, thread = "worker",
  run = function(ctx)
    ctx:defer(function() ctx:log("deferred") end)
    ctx:log(ctx.name, ctx.attempt, ctx.index, ctx:get("base", "integer"))
    ctx:progress(1, 2)
    ctx:set("a", { 1, 2 })
    ctx:log("between")
    ctx:set("a", 3)
    assert(ctx:has("a") and ctx:get("a") == 3)
    ctx:set("a", nil)
  end,
})
local ItemOp = flow.op("ItemOp", {
  needs = { n = "integer", base = "integer" }, gives = { sum = "integer" }, thread = "worker",
  primary_input = "n",
  run = function(ctx)
    ctx:defer(function() ctx:log("deferred", ctx.index) end)
    ctx:log(ctx.name, ctx.attempt, ctx.index, ctx:get("n") + ctx:get("base"))
    ctx:set("sum", ctx:get("n") + ctx:get("base"))
  end,
})
local run = flow.new("all"):data { base = 10, ns = { 1, 2 }, other = 1 }:add(OneOp)
  :add_grouped(ItemOp, { input = "ns", output = "out", max_concurrent = 1 }):run()
io.write((run:summary():gsub("^%s+", "")))
local events = run:events()
local progress
for _, event in ipairs(events) do
  if event.kind == "progress" then progress = event end
end
check.equal(progress.op, "OneOp")
