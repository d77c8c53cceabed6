-- The error of a final step that fails after another failure is reported, with its op; alone it fails the flow.
local check, host, flow = require "check", require "host", require "flow"

local function run(text)
  return host.script("local flow = require 'flow'\n" .. text)
end
local fails = [[
  local FailOp = flow.op("FailOp", function(ctx) ctx:fail "first" end)
  local NotifyOp = flow.op("NotifyOp", function(ctx) ctx:fail "the hook is unreachable" end)
]]
local result = run(fails .. [[
  local run = flow.new("f"):add(FailOp):add_finally(NotifyOp):add_finally(NotifyOp):run()
  print(run.error)
]])
check.equal(result.stdout, "[f/FailOp] first\n")
local line = "f failed: [f/NotifyOp] the hook is unreachable"
check.contains(result.stderr, "2 times: " .. line)
check.equal(select(2, result.stderr:gsub("NotifyOp", "")), 1)
check.equal(result.status, 1)

-- In a flow within another, and in one whose run was cancelled.
result = run(fails .. [[
  local inner = flow.new("inner"):add(FailOp):add_finally(NotifyOp)
  print(flow.new("outer"):add(inner):run().error)
  local cancelled = flow.new("cancelled"):add(flow.op("WaitOp", function() flow.sleep(60) end)):add_finally(NotifyOp):start()
  flow.sleep(0)
  cancelled:cancel "enough"
  cancelled:wait()
  print(cancelled.state)
]])
check.equal(result.stdout, "[outer/inner/FailOp] first\ncancelled\n")
check.contains(result.stderr, "outer failed: [outer/inner/NotifyOp] the hook", "cancelled failed: [cancelled/NotifyOp] the hook")
check.equal(result.status, 1)

-- Alone it is the error of the flow, and is reported nowhere else.
result = run(fails .. [[
  print(flow.new("f"):add_finally(NotifyOp):run().error)
]])
check.equal(result.stdout, "[f/NotifyOp] the hook is unreachable\n")
check.equal(result.stderr, "")
check.equal(result.status, 0)
