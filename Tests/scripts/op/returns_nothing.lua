-- The return value of run doesn't matter unless it is a task.
local flow, check = require "flow", require "check"
for _, body in ipairs {
  function() return false end, function() return nil, "error" end, function() return 1, 2, 3 end,
  function() return {} end, function() return table.unpack({}, 1, 200) end,
} do
  check.equal(flow.op("ReturnOp", body):run().ok, true)
end
