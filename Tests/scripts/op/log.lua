-- ctx:log joins its arguments with spaces through tostring and keeps newlines, which summaries escape.
local flow, check = require "flow", require "check"
local object = setmetatable({}, { __tostring = function() return "an object" end })
local run = flow.new("log"):add(flow.op("LogOp", function(ctx)
  ctx:log("text", 1, 1.0, nil, true, object)
  ctx:log()
  ctx:log("")
  ctx:log(nil)
  ctx:log("two\nlines")
  ctx:log("tab\tand \0 zero")
end)):run()
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
T [LogOp] WillStart
T [LogOp] text 1 1.0 nil true an object
T [LogOp] 
T [LogOp] 
T [LogOp] nil
T [LogOp] two\nlines
T [LogOp] tab\tand \x00 zero
T [LogOp] DidFinish: successfully
T [DataBucket] end with:
Flow isSuccess: true
======    Ending    ======
]])
local messages = {}
for _, event in ipairs(run:events()) do if event.kind == "log" then messages[#messages + 1] = event.message end end
check.equal(messages[5], "two\nlines")
check.equal(messages[6], "tab\tand \0 zero")
