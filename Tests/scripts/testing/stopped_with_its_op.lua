-- A test inside an op ends with the op.
-- A timeout of the op ends busy code, waits for programs, endless sleeps and tests within the test.
-- clock: real: busy code is stopped by the machine's clock
-- expect-stdout:
--| done
local flow, testing, check = require "flow", require "flow.testing", require "check"

local cleaned
local cases = {
  busy = function() while true do end end,
  busy_in_pcall = function() while true do pcall(function() while true do end end) end end,
  for_ever = function() while true do flow.sleep(1) end end,
  catching = function() while true do pcall(flow.sleep, 1) end end,
  program = function() flow.exec({ "sleep", "30" }):await() end,
  comparison = function() table.sort({ 2, 1 }, function() while true do end end) end, -- luacheck: ignore
  generator = function() coroutine.wrap(function() while true do end end)() end,
  wait_in_place = function()
    table.sort({ 2, 1 }, function(a, b) flow.exec({ "sleep", "30" }):await() return a < b end)
  end,
  test = function() testing.run(flow.op("NestedOp", function() while true do end end)) end,
  tests = function()
    while true do pcall(testing.run, flow.op("NestedOp", function() while true do end end)) end
  end,
  -- Its cleanups run: a grace of the test's own clock.
  busy_with_cleanup = function(ctx)
    ctx:defer(function() flow.sleep(0.5) cleaned = (cleaned or 0) + 1 end)
    while true do end
  end,
  waiting_with_cleanup = function(ctx)
    ctx:defer(function() flow.sleep(0.5) cleaned = (cleaned or 0) + 1 end)
    flow.exec({ "sleep", "30" }):await()
  end,
}

local function started(name, is_later)
  return flow.op("OuterOp", {
    timeout = 0.03,
    run = function(ctx)
      if is_later then flow.sleep(0.001) end
      testing.run(flow.op("InnerOp", cases[name]), { exec = "real" })
      ctx:fail("the test of " .. name .. " has ended by itself")
    end,
  }):run()
end

-- In a task: the wait of the main chunk is one that can't be parked.
flow.spawn(function()
  local names = {}
  for name in pairs(cases) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    for _, is_later in ipairs { false, true } do
      local begin = flow.now()
      local run = started(name, is_later)
      assert(flow.now() - begin < 25, name)
      check.equal(run.error.message, "timed out after 0.03s", name)
    end
  end
  check.equal(cleaned, 4)
  -- Nothing of it is left: a later test takes its time.
  local run = flow.op("OuterOp", function(ctx)
    ctx:set("duration", testing.run(flow.ops.SleepOp(5)).duration)
  end):run()
  check.equal(run.data.duration, 5.0)
  print "done"
end)
