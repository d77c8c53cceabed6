-- A cleanup that waits below a C function is cut at the end of the grace.
-- expect-status: 1
-- expect-stdout:
--| timed out after 0.02s
--| cancelled: enough
-- expect-stderr: CleanOp failed: the cleanup of [CleanOp] at Tests/scripts/stop/cleanup_in_place.lua:11 was cut after a grace of 0.1s
local flow = require "flow"
local function op(options, body)
  options.grace = 0.1
  options.run = function(ctx)
    ctx:defer(function()
      string.gsub("a", "a", function() flow.sleep(20) end)
      print "not here"
    end)
    body(ctx)
  end
  return flow.op("CleanOp", options)
end
-- In a task: the wait of the main chunk is one that can't be parked.
flow.spawn(function()
  local begin = flow.now()
  print(op({ timeout = 0.02 }, function() flow.sleep(20) end):run().error.message)
  -- Stopped when the cleanup has begun.
  print(op({}, function(ctx)
    flow.spawn(function() flow.sleep(0.02) ctx.run:cancel "enough" end)
  end):run().error.message)
  assert(flow.now() - begin < 10, flow.now() - begin)
end)
