-- flow.ops holds the ops written in Swift and is like a read-only table.
local flow, check = require "flow", require "check"
check.equal(flow.ops, flow.ops)
check.equal(flow.ops.NoSuchOp, nil)
check.equal(flow.ops[1], nil)
check.usage(function() flow.ops.PrintOp = nil end, "flow.ops", "read-only")
local last = ""
for name, op in pairs(flow.ops) do
  assert(name > last)
  last = name
  check.equal(op, flow.ops[name])
  check.equal(op.name, name)
  check.equal(tostring(op), "op: " .. name)
end
assert(last ~= "")
