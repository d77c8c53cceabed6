-- The log shows a machine's state after each change, before the transition.
local flow, check = require "flow", require "check"
local forward, step = flow.forward, flow.step
local function machine(options)
  options.name, options.start = "m", "a"
  return flow.machine(options)
end
local m = machine {
  step("a", { run = function(state) return { n = state.n + 1 } end, flow.next(forward "b") }),
  step("b", { run = function(state) state.n = state.n + 1 end, flow.next(forward "c") }),
  step("c", { run = function() end, flow.next(forward "d") }),
  step("d", { run = function() return 7 end, flow.next(forward "e") }),
  step("e", { run = function() return "text" end }),
}
local run = m:run { n = 1 }
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
n: 1
T [m] WillStart
T [m] state: {n = 2}
T [m] a -> b
T [m] state: {n = 3}
T [m] b -> c
T [m] c -> d
T [m] state: 7
T [m] d -> e
T [m] state: text
T [m] DidFinish: successfully
T [DataBucket] end with:
n: 1
Flow isSuccess: true
======    Ending    ======
]])
local values = {}
for _, event in ipairs(run:events()) do
  if event.kind == "state" then
    check.equal(event.op, "m")
    check.equal(event.message, "state: " .. event.value)
    values[#values + 1] = event.value
  end
end
check.same(values, { "{n = 2}", "{n = 3}", "7", "text" })

-- A state that is the same again makes no line, nor does one whose fields become data.
run = machine {
  reduce = function(state) return flow.continue { n = state.n } end,
  step("a", { run = function() end, flow.next(forward "b") }), step("b", { run = function() end, final = true }),
}:run { n = 1 }
check.lacks(run:summary(), "state:")
-- Secrets are none in it, however short, and a long state is cut.
local keeper = machine {
  step("a", { run = function(state) return { pin = state.pin, note = "my pin", long = ("x"):rep(500) } end,
    flow.next(forward "b") }),
  step("b", { run = function() return {} end }),
}
run = flow.new("f"):data { pin = flow.secret "12" }:add(keeper):run()
assert(run.ok, run.error)
check.contains(run:summary(), "[m] state: {long = xxx")
run = flow.new("f"):data { pin = flow.secret "12" }:add(machine {
  step("a", { run = function(state) return { pin = state.pin, note = 1 } end, flow.next(forward "b") }),
  step("b", { run = function() return {} end }),
}):run()
check.contains(run:summary(), "[m] state: {note = 1, pin = <redacted>}\n")
check.lacks(run:summary(), "12}", "pin = 12")
-- A retry shows the state it goes back to.
local tries = 0
run = machine {
  reduce = function(state, result)
    if result == "b" and tries == 0 then tries = 1 return flow.retry() end
    return flow.continue(state + 1)
  end,
  step("a", { run = function() return "a" end, flow.next(forward "b") }),
  step("b", { run = function() return "b" end, final = true }),
}:run(0)
check.contains(run:summary(), "[m] state: 1\n", "[m] a -> b\n", "[m] state: 0\n", "[m] retry a\n", "[m] state: 2\n")
