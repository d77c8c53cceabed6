-- ctx:fail finishes the op with an error that has the given fields.
local flow, check = require "flow", require "check"
local after = false
local details = {}
local run = flow.op("LoginOp", function(ctx)
  ctx:fail("No such account", { code = 404, details = details })
  after = true
end):run()
check.equal(after, false)
check.equal(run.error.kind, "error")
check.equal(run.error.message, "No such account")
check.equal(tostring(run.error), "[LoginOp] No such account")
check.equal(run.error.code, 404)
assert(rawequal(run.error.details, details))
check.equal(run.error.op, "LoginOp")
check.contains(run:summary(), "[LoginOp] DidFinish: withError: No such account\n", "Flow isSuccess: false\n")
