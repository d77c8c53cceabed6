-- The failure of a run that an op has started is reported at the end, with its path, if nothing looks at it.
-- expect-status: 1
-- expect-stderr: FailOp failed: [RunOp/FailOp] by run
-- expect-stderr: FailOp failed: [StartOp/FailOp] by start
-- expect-stderr: FailOp failed: [all/RunOp #2/FailOp] by run
local flow, check = require "flow", require "check"

local FailOp = flow.op("FailOp", function(ctx, text) ctx:fail(text) end)
local RunOp = flow.op("RunOp", function() FailOp("by run"):run() end)
local StartOp = flow.op("StartOp", function() FailOp("by start"):start() end)
for _, op in ipairs { RunOp, StartOp } do check.equal(op:run().ok, true) end
check.equal(flow.new("all"):add_grouped(RunOp, { input = "list", as = "x" }):run({ list = { 1, 2 } }).ok, true)
