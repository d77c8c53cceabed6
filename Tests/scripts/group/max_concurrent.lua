-- Items run up to max_concurrent at a time, three by default, and every place is used.
local flow, check = require "flow", require "check"
local function most(limit)
  local now, peak, done = 0, 0, 0
  local CountOp = flow.op("CountOp", {
    needs = { item = "any" },
    run = function()
      now = now + 1
      peak = math.max(peak, now)
      flow.sleep(0.001)
      now, done = now - 1, done + 1
    end,
  })
  local list = {}
  for i = 1, 20 do list[i] = i end
  local run = flow.new("count"):data { list = list }
    :add_grouped(CountOp, flow.dispatcher { input = "list", max_concurrent = limit }):run()
  assert(run.ok, run.error)
  check.equal(done, 20)
  return peak
end
check.equal(most(1), 1)
check.equal(most(2), 2)
check.equal(most(nil), 3)
check.equal(most(7), 7)
check.equal(most(20), 20)
check.equal(most(1000), 20)
