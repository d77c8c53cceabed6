-- A machine with very many transitions doesn't recurse, and only its log grows.
local flow, check = require "flow", require "check"
local n = os.getenv "FLOWLUA_SANITIZER" and 20000 or 300000
local count = 0
local machine = flow.machine {
  name = "bounce", start = "ping", max_transitions = n,
  reduce = function(state) count = count + 1 return count > n and flow.finish(state) or flow.continue(state) end,
  flow.step("ping", { run = function() return {} end, flow.next(flow.forward "pong") }),
  flow.step("pong", { run = function() return { 1 } end, flow.next(flow.forward "ping") }),
}
collectgarbage()
collectgarbage()
local before = collectgarbage "count"
local run = machine:run { a = 1 }
check.equal(run.ok, true)
collectgarbage()
collectgarbage()
local kept = collectgarbage "count" - before
if kept > 400 then error(("%g KB are kept of %d transitions"):format(kept, n)) end

-- Machines in machines.
local inner = flow.ops.SleepOp(0)
for i = 1, 300 do
  inner = flow.machine { name = "m" .. i, start = "a", flow.step("a", { run = inner }) }
end
check.equal(inner:run().ok, true)
