-- A function of an op that returns a value, which nobody gets, is a warning with its place, once.
-- expect-stderr: flowlua: warning: SumOp at Tests/scripts/op/dropped_result.lua:6 returns a value, which is dropped
-- expect-stderr: flowlua: warning: LateOp at Tests/scripts/op/dropped_result.lua:9 returns a value, which is dropped
local flow, check = require "flow", require "check"

local SumOp = flow.op("SumOp", function(_, a, b)
  return a + b
end)
local LateOp = flow.op("LateOp", function(_, text)
  flow.sleep(1)
  return text, 2
end)
local QuietOp = flow.op("QuietOp", function() return nil, "nothing of it is a first result" end)
-- A function of C returns what it likes.
local TextOp = flow.op("TextOp", tostring)
local TaskOp = flow.op("TaskOp", function() return flow.resolved(5) end)
for _ = 1, 3 do
  check.equal(SumOp(1, 2):run().ok, true)
  check.equal(LateOp("text"):run().ok, true)
  check.equal(QuietOp:run().ok, true)
  check.equal(TextOp:run().ok, true)
  check.equal(TaskOp:run().ok, true)
end
