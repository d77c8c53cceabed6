-- arg[1] ops of a group that sleep 0.1 s, all at the same time, the whole event log kept. Prints
-- the milliseconds beyond the 100, and the most memory that was used, in MiB.
local flow = require "flow"
local n = tonumber(arg[1])
local SleepyOp = flow.op("SleepyOp", function() flow.sleep(0.1) end)
local list = {}
for i = 1, n do list[i] = i end
local blueprint = flow.new("sleepers")
  :data { list = list }
  :add_grouped(SleepyOp:with { primary_input = "item" }, { input = "list", max_concurrent = n })
local before = flow.now()
local run = blueprint:run()
local elapsed = flow.now() - before
assert(run.ok)
print((elapsed - 0.1) * 1e3)
for line in io.lines("/proc/self/status") do
  local peak = line:match("^VmHWM:%s*(%d+)")
  if peak then print(peak / 1024) end
end
