-- The failure of a program is reported with the traceback of its await.
-- expect-status: 1
-- expect-stderr: RunOp failed: [RunOp] false exited with status 1
-- expect-stderr: Tests/scripts/ops/exec_traceback.lua:9: in function
-- expect-stderr: flowlua: false exited with status 1
-- expect-stderr: Tests/scripts/ops/exec_traceback.lua:12: in main chunk
local flow = require "flow"

local RunOp = flow.op("RunOp", function() flow.exec({ "false" }):await() end)
RunOp:run()

flow.exec({ "false" }):await()
