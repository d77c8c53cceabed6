-- Runs /bin/true so many times in a group, 8 at a time: programs.lua COUNT captured|uncaptured
local flow = require "flow"
local list = {}
for i = 1, assert(tonumber(arg[1])) do list[i] = i end
local TrueOp = flow.ops.ExecOp({ "/bin/true" }, { capture = arg[2] == "captured" })
local run = flow.new("programs"):data { list = list }
  :add_grouped(TrueOp, { input = "list", as = "number", max_concurrent = 8 }):run()
assert(run.ok, run.error)
