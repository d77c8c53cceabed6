-- Code in pcall and xpcall may wait, in the main chunk and in ops.
local flow, check = require "flow", require "check"
local function wait_and_fail()
  flow.sleep(0.001)
  error("after the wait", 0)
end
local function both()
  check.same({ pcall(wait_and_fail) }, { false, "after the wait" })
  check.same({ xpcall(wait_and_fail, function(m) return "handled " .. m end) }, { false, "handled after the wait" })
  check.same({ pcall(function(...) flow.sleep(0.001) return ... end, 1, nil, 3) }, { true, 1, nil, 3 })
  check.same({ pcall(pcall, function() flow.sleep(0.001) error("inner", 0) end) }, { true, false, "inner" })
end
both()
local run = flow.op("BothOp", both):run()
assert(run.ok, run.error)
