-- ctx:fail settles the op at once, even if the code continues.
local flow, check = require "flow", require "check"
local raised = {}
local run = flow.op("StubbornOp", function(ctx)
  pcall(ctx.fail, ctx, "first")
  for _, attempt in ipairs {
    function() ctx:fail("second") end, function() ctx:log("too late") end,
    function() ctx:set("x", 1) end, function() ctx:get("x") end, function() ctx:has("x") end,
  } do
    raised[#raised + 1] = select(2, pcall(attempt))
  end
end):run()
check.equal(run.error.message, "first")
check.equal(#raised, 5)
for _, e in ipairs(raised) do check.equal(e.kind, "usage") end
check.lacks(run:summary(), "too late", "second")
