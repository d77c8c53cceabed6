-- Ops run once each in the order they were added, as the summary shows to the letter.
local flow, check = require "flow", require "check"
local PrintOp = flow.op("SimplePrintOp", function(ctx, message) ctx:log(message) end)
check.summary(flow.new("simple"):add(PrintOp("hello world")):add(PrintOp("good bye")):run(), [[
====== Flow Summary ======
T [DataBucket] start with:
T [SimplePrintOp] WillStart
T [SimplePrintOp] hello world
T [SimplePrintOp] DidFinish: successfully
T [SimplePrintOp] WillStart
T [SimplePrintOp] good bye
T [SimplePrintOp] DidFinish: successfully
T [DataBucket] end with:
Flow isSuccess: true
======    Ending    ======
]])
