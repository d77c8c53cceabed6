-- Every function of a machine may wait, also in its own coroutines, and can be stopped there.
local flow, check = require "flow", require "check"
local forward, step = flow.forward, flow.step

local lines = {}
local function note(text) lines[#lines + 1] = text end
local function wait(text)
  note(text)
  coroutine.wrap(function() flow.sleep(0.001) end)()
end

local m = flow.machine {
  name = "m", start = "a",
  emit = function(result) wait "emit" return result == 2 and "go" end,
  reduce = function(state, result) wait "reduce" return flow.continue(state + result) end,
  step("a", { run = function(state) wait("a " .. state) return 2 end, flow.on("go", forward "b") }),
  step("b", { run = function() wait "b" return pcall(function() wait "in b" error "x" end) and 0 or 1 end }),
}
local run = m:start(10)
check.equal(run.state, "pending")
check.equal(run:await(), 13)
check.same(lines, { "a 10", "reduce", "emit", "b", "in b", "reduce", "emit" })

lines = {}
local provided = flow.machine {
  name = "provided", start = "a",
  navigate = function(transition, state, ctx)
    wait(("%s %s %d"):format(transition.kind, transition.step, state))
    ctx:log("at", transition.step)
    return state + 1
  end,
  transition = function(at, result, state)
    wait(("%s %d %d"):format(at, result, state))
    if state == 1 then return forward "b" end
    if state == 2 then return flow.back() end
    if state == 3 then return flow.stay() end
  end,
}
check.equal(provided:run(0).result, 4)
check.same(lines, { "forward a 0", "a 1 1", "forward b 1", "b 2 2", "back a 2", "a 3 3", "stay a 3", "a 4 4" })
local continued = provided:continue("elsewhere", 3, 3)
check.equal(continued.name, "provided")
continued:wait()

-- A step that returns a task ends with it.
local tasks = flow.machine {
  name = "tasks", start = "a",
  step("a", { run = function() return flow.exec { "echo", "hello" } end, flow.next(forward "b") }),
  step("b", { run = function(state) return { stdout = state.stdout } end }),
}
check.equal(tasks:run().result.stdout, "hello\n")
local failing = flow.machine { name = "f", start = "a", step("a", { run = function() return flow.exec { "false" } end }) }
check.equal(failing:run().error.status, 1)

-- Stopping raises at the wait; what a step has started ends with it.
local raised, child
local slow = flow.machine {
  name = "slow", start = "a",
  step("a", { run = function(_, ctx)
    child = flow.ops.SleepOp(60):start()
    ctx:defer(function() note "cleaned up" end)
    local _, err = pcall(flow.sleep, 60)
    raised = err
    error(err)
  end }),
}
lines = {}
run = slow:start()
run:cancel "enough"
run:wait()
check.equal(run.state, "cancelled")
check.equal(run.error.message, "cancelled: enough")
check.equal(raised.kind, "cancelled")
check.equal(child.state, "cancelled")
check.same(lines, { "cleaned up" })

run = slow:with { timeout = 5 }:run()
check.equal(run.error.message, "timed out after 5s")
-- An op of a step ends with its machine.
local op = flow.machine { name = "op", start = "a", step("a", { run = flow.ops.SleepOp(60) }) }
run = op:with { timeout = 5 }:run()
check.equal(run.error.message, "timed out after 5s")
check.contains(run:summary(), "[SleepOp] DidFinish: cancelled: timed out after 5s",
  "[op] DidFinish: timedOut after 5s")

-- Busy functions are stopped, whichever it is.
local function busy() while true do pcall(function() while true do end end) end end
local function idle() end
for _, definition in ipairs {
  { step("a", { run = busy }) }, { step("a", { run = idle }), emit = busy },
  { step("a", { run = idle }), reduce = busy }, { step("a", { run = idle }), transition = busy },
  { step("a", {}), navigate = busy },
  { step("a", { run = function() flow.sleep(0) busy() end }) },
} do
  definition.name, definition.start, definition.timeout = "busy", "a", 0.02
  check.equal(flow.machine(definition):run().error.kind, "timeout")
end
