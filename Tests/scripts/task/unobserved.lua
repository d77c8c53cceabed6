-- An unobserved failure is reported once, with the place where its task was made.
-- expect-status: 1
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:16 failed: unseen
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:17 failed: Tests/scripts/task/unobserved.lua:17: raised
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:18 failed: passed on
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:20 failed: late
-- expect-stderr: task at Tests/scripts/task/unobserved.lua:30 failed: Tests/scripts/task/unobserved.lua:30: later
-- expect-stdout:
--| unobserved.lua:16
--| unobserved.lua:17
--| unobserved.lua:18
--| unobserved.lua:20
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
for _, line in ipairs { 16, 17, 18, 20 } do print("unobserved.lua:" .. line) end
-- Nobody sees a failure in a task that is pending.
local pending = flow.spawn(function() flow.sleep(1) error "later" end)
local _, _, _, _ = pending.state, pending.error, pending.result, pending.faulted
