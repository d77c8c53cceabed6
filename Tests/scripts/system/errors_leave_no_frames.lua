-- A hundred thousand errors of functions leave nothing on any stack.
local check = require "check"
local flow = require "flow"

local failed = 0
for _ = 1, 100000 do
  if not pcall(flow.sleep, "no number") then failed = failed + 1 end
end
check.equal(failed, 100000)
