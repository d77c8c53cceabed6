-- A bucket holds ten thousand keys.
local flow, check = require "flow", require "check"
local run = flow.op("ManyOp", function(ctx)
  for i = 1, 10000 do ctx:set("key" .. i, i) end
  for i = 1, 10000 do assert(ctx:get("key" .. i, "integer") == i) end
  for i = 1, 10000, 2 do ctx:set("key" .. i, nil) end
end):run()
assert(run.ok, run.error)
check.equal(run.data.key1, nil)
check.equal(run.data.key10000, 10000)
