-- `max_concurrent` holds exactly, and outputs keep the order of the inputs.
-- clock: real: computing takes no time on a virtual clock
local flow = require "flow"
local check = require "check"
-- The times of the items, all of one clock, show which ones execute together.
local TimeOp = flow.op("TimeOp", {
  needs = { n = "integer" }, gives = { span = "table" }, thread = "worker",
  run = function(ctx)
    local n = ctx:get("n")
    local begin = flow.now()
    if n % 7 == 0 then flow.sleep(0.002)
    elseif n % 5 == 0 then for _ = 1, 20000 do math.sin(n) end
    elseif n % 3 == 0 then flow.spawn(function() flow.sleep(0.0005) end):await()
    elseif n % 11 == 0 then pcall(error, "x") end
    ctx:set("span", { n, begin, flow.now() })
  end,
})
local ns = {}
for i = 1, 400 do ns[i] = i end
for _, limit in ipairs { 1, 2, 3, 5, 17, 400 } do
  local run = flow.new("g"):data { ns = ns }
    :add_grouped(TimeOp, { input = "ns", output = "spans", max_concurrent = limit }):run()
  assert(run.ok, run.error and run.error.message)
  local points = {}
  for i, span in ipairs(run.data.spans) do
    check.equal(span[1], i)
    points[#points + 1] = { span[2], 1 }
    points[#points + 1] = { span[3], -1 }
  end
  table.sort(points, function(a, b) if a[1] ~= b[1] then return a[1] < b[1] end return a[2] < b[2] end)
  local now, most = 0, 0
  for _, point in ipairs(points) do
    now = now + point[2]
    most = math.max(most, now)
  end
  assert(most <= limit, ("%d at a time, %d allowed"):format(most, limit))
  assert(limit < 2 or most > 1, "never two at a time")
end
