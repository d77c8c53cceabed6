-- An unobserved failure of a test's run is reported once, at exit.
-- expect-status: 1
-- expect-stderr: LostOp failed: [LostOp] nobody looked
-- expect-stderr: TaskOp failed: [TaskOp/TaskOp] spawned and lost
local flow, testing = require "flow", require "flow.testing"
testing.run(flow.op("LostOp", function() error("nobody looked", 0) end))
assert(testing.run(flow.op("SeenOp", function() error("seen", 0) end)).error)
assert(testing.run(flow.op("TaskOp", function(ctx)
  flow.op("TaskOp", function() error("spawned and lost", 0) end):start()
  ctx:log("goes on")
end)).ok)
