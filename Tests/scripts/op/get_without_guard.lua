-- A failing ctx:get finishes the op there, even if the code catches the error.
local flow, check = require "flow", require "check"
local went_on, later
local run = flow.op("GetOp", function(ctx)
  local ok = pcall(function() ctx:get("missing") end)
  went_on = not ok
  later = select(2, pcall(function() ctx:set("x", 1) end))
end):run()
check.equal(went_on, true)
check.equal(run.error.kind, "insufficient_input")
check.equal(run.data.x, nil)
check.equal(later.kind, "usage")
