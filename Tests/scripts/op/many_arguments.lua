-- An op receives 250 bound arguments, nils included, in every run.
local flow, check = require "flow", require "check"
local values = {}
for i = 1, 250 do if i % 7 ~= 0 then values[i] = i end end
local seen
local ManyOp = flow.op("ManyOp", function(_, ...) seen = table.pack(...) end)
local bound = ManyOp(table.unpack(values, 1, 250))
for _ = 1, 3 do
  seen = nil
  assert(flow.new("many"):add(bound):run().ok)
  check.equal(seen.n, 250)
  for i = 1, 250 do check.equal(seen[i], values[i], "argument " .. i) end
end
