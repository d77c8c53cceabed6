-- Items of an iterator whose calls take long start while it is called.
-- clock: real: an iterator that computes takes time of the machine
local flow, check = require "flow", require "check"

local calls, first = 0, nil
local function slow()
  calls = calls + 1
  -- Longer than the time after which the iterator lets others run.
  local till = os.clock() + 0.002
  while os.clock() < till do end
  if calls <= 40 then return calls end
end
local StartOp = flow.op("StartOp", { needs = { n = "integer" }, run = function(ctx)
  first = first or { ctx:get "n", calls }
  flow.sleep(0.001)
end })
flow.new("f"):add_grouped(StartOp, { input = "ns", max_concurrent = 16 }):run { ns = slow }
check.same(first, { 1, 1 })
check.equal(calls, 41)

-- Others run while it is called, also if no item waits.
local turns = 0
local ticker = flow.spawn(function() while true do flow.sleep(0.0001) turns = turns + 1 end end)
local QuickOp = flow.op("QuickOp", { needs = { n = "integer" }, run = function() end })
calls = 0
flow.new("f"):add_grouped(QuickOp, { input = "ns", max_concurrent = 16 }):run { ns = slow }
check.equal(calls, 41)
check.equal(turns > 10, true)
ticker:cancel()
