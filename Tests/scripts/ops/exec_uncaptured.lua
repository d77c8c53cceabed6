-- With capture = false a program writes to flowlua's outputs, in order.
-- expect-stdout:
--| before
--| from the program
--| after
--| from the op
--| at the end
-- expect-stderr: to stderr
local flow, check = require "flow", require "check"
io.write "before\n"
local result = flow.exec({ "sh", "-c", "echo from the program; echo to stderr >&2" },
  { capture = false }):await()
check.same(result, { status = 0 })
io.write "after\n"
local run = flow.ops.ExecOp({ "echo", "from the op" }, { capture = false }):run()
check.same(run.data, { status = 0 })
check.usage(function() flow.exec({ "true" }, { capture = 1 }) end, "exec", "'capture'", "boolean")
local failed = flow.exec({ "false" }, { capture = false })
check.raises(function() failed:await() end, "false exited with status 1")
check.equal(failed.error.stdout, nil)
print "at the end"
