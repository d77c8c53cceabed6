-- A run that nobody holds continues through full garbage collections.
-- expect-stdout:
--| finished	true
local flow = require "flow"
do
  flow.new("held by nobody")
    :add(flow.op("WaitOp", function(ctx)
      local t = setmetatable({}, { __gc = function() end })
      for _ = 1, 5 do flow.sleep(0.001) collectgarbage() end
      ctx:set("t", t)
    end))
    :did_finish(function(run) print("finished", run.ok) end)
    :start()
end
for _ = 1, 5 do collectgarbage() flow.sleep(0.002) end
