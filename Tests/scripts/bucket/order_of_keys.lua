-- Keys keep the order in which they were added, and those of one table are sorted.
local flow, check = require "flow", require "check"
local run = flow.new("order")
  :data { c = 1, a = 2, b = 3 }
  :add(flow.op("SetOp", function(ctx)
    ctx:set("z", 1) ctx:set("y", 2) ctx:set("a", nil) ctx:set("a", 4) ctx:set("c", 5)
  end))
  :run { x = 0, b = 9 }
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
a: 2
b: 9
c: 1
x: 0
T [SetOp] WillStart
T [DataBucket] add for z: 1
T [DataBucket] add for y: 2
T [DataBucket] remove for a
T [DataBucket] add for a: 4
T [DataBucket] replace for c: 1 -> 5
T [SetOp] DidFinish: successfully
T [DataBucket] end with:
b: 9
c: 5
x: 0
z: 1
y: 2
a: 4
Flow isSuccess: true
======    Ending    ======
]])
