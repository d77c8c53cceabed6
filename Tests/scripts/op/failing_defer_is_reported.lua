-- A failing cleanup of a failing op is reported like an unobserved failure.
-- expect-status: 1
-- expect-stderr: untidy
local flow = require "flow"
local run = flow.op("BadOp", function(ctx)
  ctx:defer(function() error("untidy") end)
  error("known")
end):run()
assert(run.error.message:find("known"))
