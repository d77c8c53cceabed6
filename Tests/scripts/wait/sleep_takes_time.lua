-- flow.sleep takes at least the given time, by flow.now.
-- clock: real: the script measures sleeps of the machine
local flow, check = require "flow", require "check"
for _, seconds in ipairs { 0, 0.001, 0.02, 1e-9 } do
  local before = flow.now()
  flow.sleep(seconds)
  assert(flow.now() - before >= seconds - 1e-6)
end
check.equal(math.type(flow.now()), "float")
assert(flow.now() <= flow.now())
