-- arg[1] transitions between two steps that are Lua functions, the whole event log kept. Prints ns each.
local flow = require "flow"
local n = tonumber(arg[1])
local function ping(state) return state + 1 end
local function pong(state) if state < n then return state + 1 end end
local machine = flow.machine {
  name = "bounce", start = "ping", max_transitions = n + 2,
  emit = arg[2] == "emit" and function(_, state) if state >= n then return "done" end end or nil,
  reduce = arg[2] ~= "emit" and function(state, result)
    if state >= n then return flow.finish(state) end
    return flow.continue(result)
  end or nil,
  flow.step("ping", { run = ping, flow.on("done", flow.forward "end"), flow.next(flow.forward "pong") }),
  flow.step("pong", { run = pong, flow.on("done", flow.forward "end"), flow.next(flow.forward "ping") }),
  flow.step("end", { run = function() end }),
}
collectgarbage()
local before = flow.now()
local run = machine:start(0)
local elapsed = flow.now() - before
assert(run.ok, run.error)
print(elapsed / n * 1e9, run.result)
