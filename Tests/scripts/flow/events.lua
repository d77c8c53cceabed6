-- run:events() returns the log as data, in order.
local flow, check = require "flow", require "check"
local run = flow.new("events"):data { items = { "a", "b" }, x = 1 }
  :add(flow.op("SetOp", function(ctx)
    ctx:set("y", 1) ctx:set("y", 2) ctx:set("y", nil)
    ctx:log("said")
  end))
  :add_grouped(flow.op("ItemOp", { needs = { item = "string" }, run = function(ctx) ctx:log("item") end }),
    { input = "items" })
  :run()
local counts, last = {}, 0
for _, event in ipairs(run:events()) do
  check.equal(math.type(event.time), "float")
  assert(event.time >= last)
  last = event.time
  counts[event.kind] = (counts[event.kind] or 0) + 1
  if event.kind ~= "group" and (event.op == "ItemOp" or event.index) then assert(event.index == 1 or event.index == 2) end
end
check.equal(counts.log, 3)
check.equal(counts.set, 1)
check.equal(counts.replace, 1)
check.equal(counts.remove, 1)
assert(counts.start >= 3 and counts.finish >= 3 and counts.group >= 1)
assert(last <= run.duration + 0.001)
