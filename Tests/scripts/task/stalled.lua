-- Waits for tasks that nothing settles fail at the end, by name.
-- A bare context doesn't keep a script.
-- expect-status: 1
-- expect-stderr: task at Tests/scripts/task/stalled.lua:14 failed: stalled: [task at Tests/scripts/task/stalled.lua:14] never finished
-- expect-stderr: task at Tests/scripts/task/stalled.lua:15 failed: stalled: [task at Tests/scripts/task/stalled.lua:15] never finished
-- expect-stdout:
--| end
--| cleaned up
local flow, check = require "flow", require "check"
local never = flow.context().task
never:next(print)
local raised = check.raises(function() never:await() end, "stalled: nothing can end this wait")
check.equal(raised.kind, "stalled")
flow.spawn(function() local g <close> = setmetatable({}, { __close = function() print "cleaned up" end }) never:await() return g end)
flow.resolved():next(function() return never end)
print "end"
