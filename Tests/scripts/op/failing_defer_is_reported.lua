-- A cleanup that raises in a failing op is reported like a failure that nobody observed.
-- expect-status: 1
-- expect-stderr: untidy
local flow = require "flow"
local run = flow.op("BadOp", function(ctx)
  ctx:defer(function() error("untidy") end)
  error("known")
end):run()
assert(run.error.message:find("known"))
