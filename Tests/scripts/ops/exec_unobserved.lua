-- An unobserved failure of flow.exec is reported, with the last five lines of stderr, and a cancellation isn't.
-- expect-status: 1
-- expect-stderr: exec at Tests/scripts/ops/exec_unobserved.lua:8 failed: sh -c 'exit 3' exited with status 3
-- expect-stderr: seq 7 >&2; exit 4' exited with status 4: 7
-- expect-stderr:     3
-- expect-stderr:     7
local flow = require "flow"
flow.exec { "sh", "-c", "exit 3" }
flow.exec { "sh", "-c", "seq 7 >&2; exit 4" }
flow.exec({ "sleep", "100" }):cancel()
pcall(function() flow.exec({ "false" }):await() end)
