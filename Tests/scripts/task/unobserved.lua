-- An unobserved failure is reported once, with the place where its task was made.
-- expect-status: 1
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:15 failed: unseen
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:16 failed: Tests/scripts/task/unobserved.lua:16: raised
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:17 failed: passed on
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:19 failed: late
-- expect-stdout:
--| unobserved.lua:15
--| unobserved.lua:16
--| unobserved.lua:17
--| unobserved.lua:19
local flow = require "flow"
-- Placed so that the lines above hold.

flow.failed("unseen")
flow.spawn(function() error("raised") end)
flow.failed("passed on"):next_on_success(print)
local c = flow.context()
c.task:next(function() error("late", 0) end)
c:set_result(1)
flow.cancelled("not reported")
flow.failed("awaited"):wait()
-- Observed: await, a continuation, or reading what tells the outcome.
pcall(flow.failed("x").await, flow.failed("y"):next_on_error(function() end))
for _, field in ipairs { "error", "state", "faulted", "result" } do local _ = flow.failed(field)[field] end
flow.failed("z"):next_on_error(function() end)
for _, line in ipairs { 15, 16, 17, 19 } do print("unobserved.lua:" .. line) end
