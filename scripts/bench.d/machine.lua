-- arg[1] transitions between two steps written as functions, the whole log kept. Prints ns each.
local flow = require "flow"
local n = tonumber(arg[1])
local forward, step = flow.forward, flow.step
local function count(state) return state + 1 end
local machine = flow.machine {
  name = "bounce", start = "ping", max_transitions = n,
  emit = function(result) if result and result > n then return "done" end end,
  flow.any_step { flow.on("done", forward "end") },
  step("ping", { run = count, flow.next(forward "pong") }),
  step("pong", { run = count, flow.next(forward "ping") }),
  step("end", { run = function() end }),
}
collectgarbage()
local before = flow.now()
local run = machine:start(1)
local elapsed = flow.now() - before
assert(run.ok, run.error)
print(elapsed / n * 1e9)
