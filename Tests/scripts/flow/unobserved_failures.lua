-- Each unobserved failure is reported.
-- expect-status: 1
-- expect-stderr: first failure
-- expect-stderr: second failure
local flow = require "flow"
local FailOp = flow.op("FailOp", function(ctx, text) flow.sleep(0.001) ctx:fail(text) end)
flow.new("a"):add(FailOp("first failure")):start()
flow.new("b"):add(FailOp("second failure")):start():wait()
