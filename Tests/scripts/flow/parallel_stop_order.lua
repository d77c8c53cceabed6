-- Parallel ops are stopped in their order, also after others of them have ended.
local flow, check = require "flow", require "check"
local ended, ops = {}, {}
for i = 1, 100 do
  ops[i] = flow.op("WaitOp", function(ctx)
    ctx:defer(function() ended[#ended + 1] = i end)
    flow.sleep(i % 3 == 0 and 1 or 9)
  end)
end
ops[101] = flow.op("FailOp", function() flow.sleep(2) error "no" end)
local run = flow.new("many"):add_parallel(table.unpack(ops)):run()
check.contains(run.error.message, "no")
local wanted = {}
for i = 3, 100, 3 do wanted[#wanted + 1] = i end
for i = 1, 100 do
  if i % 3 ~= 0 then wanted[#wanted + 1] = i end
end
check.same(ended, wanted)
