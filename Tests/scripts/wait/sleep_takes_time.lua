-- flow.sleep sleeps at least as long as it is told, by flow.now.
local flow, check = require "flow", require "check"
for _, seconds in ipairs { 0, 0.001, 0.02, 1e-9 } do
  local before = flow.now()
  flow.sleep(seconds)
  assert(flow.now() - before >= seconds - 1e-6)
end
check.equal(math.type(flow.now()), "float")
assert(flow.now() <= flow.now())
