-- A test can run in an op, a C callback and another test, and work outside it stands still.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local SleepOp = flow.ops.SleepOp
local ticks = 0
local ticker = flow.spawn(function()
  while true do ticks = ticks + 1; flow.sleep(0.001) end
end)
local outer = flow.op("OuterOp", function(ctx)
  local before = ticks
  local run = testing.run(flow.new("tested"):add(SleepOp(500)):add(SleepOp(600)))
  assert(run.ok)
  check.equal(run.duration, 1100.0)
  check.equal(ticks, before, "nothing outside goes on")
  ctx:log("after the test")
  flow.sleep(0.002)
  ctx:set("duration", run.duration)
end):run()
assert(outer.ok, outer.error)
check.equal(outer.data.duration, 1100.0)
check.contains(outer:summary(), "[OuterOp] after the test")
check.lacks(outer:summary(), "tested")
assert(outer.duration < 60)
assert(ticks > 0 and ticker:cancel())

-- Within each other, each on its clock.
local times = {}
local nested = testing.run(flow.op("OneOp", function()
  flow.sleep(10)
  testing.run(flow.op("TwoOp", function() flow.sleep(7); times[#times + 1] = flow.now() end))
  times[#times + 1] = flow.now()
end))
assert(nested.ok, nested.error)
check.same(times, { 7.0, 10.0 })

-- In a comparison, where no coroutine can yield.
local list = { 3, 1, 2 }
table.sort(list, function(a, b)
  return testing.run(flow.op("LessOp", function(ctx)
    flow.sleep(1)
    ctx:set("less", a < b)
  end)).data.less
end)
check.same(list, { 1, 2, 3 })

-- In many ops at the same time.
local group = flow.new("group"):data { items = { 1, 2, 3, 4 } }:add_grouped(flow.op("TestOp", {
  needs = { item = "integer" }, gives = { seconds = "number" },
  run = function(ctx)
    flow.sleep(0.001)
    ctx:set("seconds", testing.run(SleepOp(ctx:get "item")).duration)
  end,
}), { input = "items", output = "all", max_concurrent = 4 }):run()
check.same(group.data.all, { 1.0, 2.0, 3.0, 4.0 })
