-- An error of the main chunk doesn't hide an unobserved failure.
-- expect-status: 1
-- expect-stderr: unobserved_failure_before_an_error.lua:8: of the main chunk
-- expect-stderr: LostOp failed: [LostOp] Tests/scripts/flow/unobserved_failure_before_an_error.lua:6: of the op
local flow = require "flow"
flow.op("LostOp", function() error("of the op") end):start()

error("of the main chunk")
