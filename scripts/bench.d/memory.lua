-- Prints the peak of resident memory, in bytes, after building a flow of arg[2] adds, or, with
-- `run` as arg[1], after running it too.
local flow = require "flow"
local what, n = arg[1], tonumber(arg[2])
local NothingOp = flow.op("NothingOp", function() end)
local blueprint = flow.new("memory")
for _ = 1, n do blueprint:add(NothingOp) end
local run = what == "run" and blueprint:run()
assert(not run or run.ok)
for line in io.lines("/proc/self/status") do
  local peak = line:match("^VmHWM:%s*(%d+) kB")
  if peak then print(tonumber(peak) * 1024) end
end
