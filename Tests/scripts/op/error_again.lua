-- An error of a run that is raised again isn't wrapped again.
local flow, check = require "flow", require "check"
local first = flow.op("InnerOp", function(ctx) ctx:fail("the reason", { code = 1 }) end):run()
local kept = first.error
local run = flow.op("OuterOp", function() error(kept) end):run()
check.equal(run.error.message, "the reason")
check.equal(run.error.code, 1)
assert(rawequal(run.error, kept))
