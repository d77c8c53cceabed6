-- `final = true` marks a step that ends a machine, and check warns of steps that lack it.
local flow, check = require "flow", require "check"
local forward, on, step = flow.forward, flow.on, flow.step
local function give(value) return function() return value end end
local function reduce(_, result) return flow.continue(result) end
local function machine(options)
  options.name, options.start = "m", "one"
  return flow.machine(options)
end
-- The any-step doesn't lead on from it, whatever the event is; the step's own events do.
local function ending(event, ...)
  return machine {
    emit = function(result) if result == "bad" then return event end end,
    flow.any_step { on("error", forward "alert"), flow.next(forward "last") },
    step("one", { run = give "1" }),
    step("alert", { run = give "alert", final = true }),
    step("last", { run = function(state) return state == "1" and "bad" or "2" end, final = true, ... }),
  }
end
for _, event in ipairs { "error", "no handler knows it" } do
  local run = ending(event):run()
  assert(run.ok, run.error)
  check.equal(run.result, "bad")
  check.contains(run:summary(), "[m] one -> last\n")
end
local own = ending("again", on("again", forward "alert"))
local run = own:run()
assert(run.ok, run.error)
check.equal(run.result, "alert")
check.contains(run:summary(), "[m] last -> alert on again\n")
check.contains(own:mermaid(), "s3 --> [*]", "s4 --> [*]")
local m
-- Where a function says the transitions, it isn't asked.
local asked = {}
m = machine {
  transition = function(name) asked[#asked + 1] = name return forward "two" end,
  step("one", { run = give "1" }), step("two", { run = give "2", final = true }),
}
check.equal(m:run().result, "2")
check.same(asked, { "one" })

-- A machine whose reduce never finishes it ends with its state, whatever that is.
for _, value in ipairs { { total = 1 }, "text", 3, false } do
  run = machine { reduce = reduce, step("one", { run = give(value), final = true }) }:run()
  assert(run.ok, run.error)
  check.equal(run.result, value)
end
run = machine { step("one", { run = give(nil) }) }:run()
assert(run.ok, run.error)
check.equal(run.result, nil)

-- With reduce, a step without a way on is a warning.
local findings = machine {
  reduce = reduce,
  step("one", { run = give "1", flow.next(forward "two"), on("x", forward "three") }),
  step("two", { run = give "2" }), step("three", { run = give "3", final = true }),
  emit = function() end,
}:check()
check.same(findings, { { severity = "warning", op = "m", message = "step 'two' has no way on and isn't marked as final" } })
check.equal(#machine { step("one", { run = give "1" }) }:check(), 0)
local way = machine {
  reduce = reduce, flow.any_step { flow.next(forward "two") },
  step("one", { run = give "1" }), step("two", { run = give "2", final = true }),
}
check.equal(#way:check(), 0)
-- A flow's check has them too.
local lost = machine { reduce = reduce, step("one", { run = give "1" }) }
findings = flow.new("f"):add(lost):check()
check.contains(findings[1].message, "step 'one' has no way on")

-- Mistakes.
check.usage(function()
  machine { step("one", { run = print, final = true, flow.next(forward "one") }) }
end, "machine", "step 'one' is final, but has a next")
check.usage(function() step("one", { run = print, final = "yes" }) end, "step", "final", "boolean")
check.usage(function()
  machine { flow.any_step { flow.next(forward "one") }, step("one", { run = print, final = true }) }
end, "machine", "or is final")

-- Transitions on events are never taken without an emitter.
local function waiting(fields)
  fields.name, fields.start = "m", "one"
  fields[1] = flow.step("one", { run = function() end, flow.on("yes", flow.forward "two") })
  fields[2] = flow.step("two", { run = function() end })
  return flow.machine(fields)
end
check.same(waiting({}):check(),
  { { severity = "warning", op = "m", message = "the event 'yes' never comes: the machine has no 'emit'" } })
check.same(waiting({ emit = function() return "yes" end }):check(), {})
