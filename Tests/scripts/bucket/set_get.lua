-- ctx:set adds, replaces and removes a value, and logs each change.
local flow, check = require "flow", require "check"
local run = flow.new("bucket"):data { x = 1 }:add(flow.op("SetOp", function(ctx)
  check.equal(ctx:has("x"), true)
  check.equal(ctx:has("y"), false)
  ctx:set("x", 2)
  ctx:set("y", "text")
  ctx:set("x", nil)
  check.equal(ctx:has("x"), false)
  ctx:set("z", nil)
  ctx:set("x", false)
  check.equal(ctx:has("x"), true)
  check.equal(ctx:get("x"), false)
end)):run()
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
x: 1
T [SetOp] WillStart
T [DataBucket] replace for x: 1 -> 2
T [DataBucket] add for y: text
T [DataBucket] remove for x
T [DataBucket] add for x: false
T [SetOp] DidFinish: successfully
T [DataBucket] end with:
y: text
x: false
Flow isSuccess: true
======    Ending    ======
]])
