-- arg[1] transitions between two steps written as functions, the whole log kept. Prints ns each.
local flow = require "flow"
local n = tonumber(arg[1])
local forward, step = flow.forward, flow.step
local function count(state) return state + 1 end
local machine = flow.machine {
  name = "bounce", start = "ping", max_transitions = n,
  step("ping", { run = count, flow.next(forward "pong") }),
  step("pong", { run = count, flow.next(forward "ping") }),
}
collectgarbage()
local before = flow.now()
local run = machine:start(1)
local elapsed = flow.now() - before
-- Nothing else ends it.
assert(run.error.message == ("exceeded max_transitions (%d)"):format(n), run.error)
print(elapsed / n * 1e9)
