-- A program can end while workers are busy, and the finalizers of workers run.
local check = require "check"
local host = require "host"
local busy = [[
local flow = require "flow"
local LoopOp = flow.op("LoopOp", { thread = "worker", run = function() while true do end end })
local SleepOp = flow.op("SleepOp", { thread = "worker", run = function() flow.sleep(1000) end })
local GroupOp = flow.op("GroupOp", { thread = "worker", primary_input = "n", run = function() while true do end end })
LoopOp:start() SleepOp:start()
flow.new("g"):data { ns = { 1, 2, 3, 4 } }:add_grouped(GroupOp, { input = "ns" }):start()
flow.sleep(0.01)
]]
for _, ending in ipairs { "os.exit(3)", "os.exit(3, true)", "flow.spawn(function() os.exit(3) end)" } do
  local result = host.script(busy .. ending, {}, { before = { "--workers", "3" } })
  check.equal(result.status, 3, ending)
  check.equal(result.stderr, "")
end
local result = host.script(busy .. "error 'end'", {}, { before = { "--workers", "3" } })
check.equal(result.status, 1)
-- States of workers are closed with their finalizers.
result = host.script([[
local flow = require "flow"
local GcOp = flow.op("GcOp", { thread = "worker", run = function()
  local t = setmetatable({}, { __gc = function() io.stdout:write("gc\n") end })
  package.loaded.kept = t
end })
GcOp:run()
]])
check.equal(result.stdout, "gc\n")
check.equal(result.status, 0)
-- A failure that nobody looks at is reported, as of any op.
result = host.script([[
local flow = require "flow"
flow.op("FailOp", { thread = "worker", run = function() error("unseen") end }):start()
]])
check.equal(result.status, 1)
assert(result.stderr:find("FailOp failed: .*unseen"), result.stderr)
-- Also one of a task in a worker.
result = host.script([[
local flow = require "flow"
local TaskOp = flow.op("TaskOp", { thread = "worker", run = function()
  flow.spawn(function() error("unseen in worker") end)
end })
assert(TaskOp:run().ok)
]])
check.equal(result.status, 1)
assert(result.stderr:find("unseen in worker"), result.stderr)
-- A worker without memory fails what it is asked, and nothing else.
