-- A function of a machine may return any of its arguments.
local flow, check = require "flow", require "check"
local forward = flow.forward
-- `transition` returns the result, which isn't the state.
local seen
local run = flow.machine {
  name = "m", start = "a",
  reduce = function(state) return flow.continue(state) end,
  transition = function(name, result) return name == "a" and result or nil end,
  flow.step("a", { run = function() return forward "b" end }),
  flow.step("b", { run = function(state) seen = state return state end }),
}:start { n = 1 }
run:wait()
assert(run.ok, run.error)
check.equal(seen.n, 1)
-- It returns the state.
local next_step = forward "b"
run = flow.machine {
  name = "m", start = "a",
  reduce = function(state) return flow.continue(state) end,
  transition = function(name, _, state) return name == "a" and state or nil end,
  flow.step("a", { run = function() return 1 end }),
  flow.step("b", { run = function(state) seen = state return 2 end }),
}:start(next_step)
run:wait()
assert(run.ok, run.error)
check.equal(seen, next_step)
-- `emit` returns the result, which is no name.
run = flow.machine {
  name = "m", start = "a",
  emit = function(result) return result end,
  reduce = function(_, result) return flow.continue(result) end,
  flow.step("a", { run = function() return { text = "next" } end, flow.next(forward "a") }),
}:start {}
run:wait()
check.contains(run.error.message, "name of an event, or nil, expected, got table")
