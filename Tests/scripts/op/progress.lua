-- Progress is an event and not a line of the summary.
local flow, check = require "flow", require "check"
local run = flow.op("WorkOp", function(ctx)
  ctx:progress(1, 4)
  ctx:progress(2.5)
  for _, value in ipairs { -1, 0 / 0, math.huge } do
    check.usage(function() ctx:progress(value) end, "'progress'", "#1", "finite")
    check.usage(function() ctx:progress(1, value) end, "'progress'", "#2", "finite")
  end
  check.usage(function() ctx:progress() end, "'progress'", "#1", "number")
end):run()
check.equal(run.ok, true)
local seen = {}
for _, event in ipairs(run:events()) do
  if event.kind == "progress" then seen[#seen + 1] = { event.op, event.done, event.total } end
end
check.same(seen, { { "WorkOp", 1, 4 }, { "WorkOp", 2.5 } })
check.lacks(run:summary(), "progress", "2.5")
