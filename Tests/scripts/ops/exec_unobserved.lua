-- An unobserved failure of flow.exec is reported, and a cancellation isn't.
-- expect-status: 1
-- expect-stderr: exec at Tests/scripts/ops/exec_unobserved.lua:5 failed: sh -c 'exit 3' exited with status 3
local flow = require "flow"
flow.exec { "sh", "-c", "exit 3" }
flow.exec({ "sleep", "100" }):cancel()
pcall(function() flow.exec({ "false" }):await() end)
