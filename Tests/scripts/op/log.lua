-- ctx:log joins its arguments with spaces through tostring and keeps newlines.
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
T [LogOp] two
lines
T [LogOp] tab	and ]] .. "\0" .. [[ zero
T [LogOp] DidFinish: successfully
T [DataBucket] end with:
Flow isSuccess: true
======    Ending    ======
]])
