-- `flow.within` also ends code that is busy, that catches every error, and ops and tasks that it runs.
-- clock: real: code that is busy takes time of the machine
local flow, check = require "flow", require "check"

local BusyOp = flow.op("BusyOp", function() while true do end end)
for name, busy in pairs {
  busy = function() while true do end end,
  catching = function() while true do pcall(function() while true do end end) end end,
  op = function() BusyOp:run() end,
  task = function() flow.spawn(function() while true do end end) end,
  later = function() flow.sleep(0.001) while true do end end,
  inner = function() flow.within(1000, function() while true do end end) end,
} do
  local err = check.raises(function() flow.within(0.05, busy) end)
  check.equal(err.kind, "timeout", name)
end
check.equal(flow.within(10, function() return "still in order" end), "still in order")

-- Also an op that the code executes, at once or after a wait, by itself or in a flow.
local LaterOp = flow.op("LaterOp", function()
  flow.sleep(0.001)
  while true do end
end)
local flows = { flow.new("flow"):add(LaterOp),
  flow.new("group"):add_grouped(LaterOp:with { name = "ItemOp" }, { input = "list", as = "n", max_concurrent = 2 }) }
for _, op in ipairs { BusyOp, LaterOp, table.unpack(flows) } do
  local err
  local run = flow.op("OuterOp", function(ctx)
    err = check.raises(function() flow.within(0.05, function() ctx:execute(op, { list = { 1, 2, 3 } }) end) end)
    flow.sleep(0.001)
  end):run()
  check.same({ op.name, run.ok, err.kind }, { op.name, true, "timeout" })
end
