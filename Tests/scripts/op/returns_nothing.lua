-- The return value of run doesn't matter unless it is a task; one that is dropped is a warning.
-- expect-stderr: warning: ReturnOp at Tests/scripts/op/returns_nothing.lua:6 returns a value
-- expect-stderr: warning: ReturnOp at Tests/scripts/op/returns_nothing.lua:7 returns a value
local flow, check = require "flow", require "check"
for _, body in ipairs {
  function() return false end,
  function() return nil, "error" end, function() return 1, 2, 3 end,
  function() return {} end, function() return table.unpack({}, 1, 200) end,
} do
  check.equal(flow.op("ReturnOp", body):run().ok, true)
end
