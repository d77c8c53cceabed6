-- An unobserved failure is reported on stderr; wait and run alone don't observe.
-- expect-status: 1
-- expect-stderr: nobody looked
local flow = require "flow"
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("nobody looked") end)
flow.new("failing"):add(FailOp):did_finish(function() end):run()
