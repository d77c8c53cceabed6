-- Steps of machines are replaced by name, by functions, ops and results.
local flow, check, testing = require "flow", require "check", require "flow.testing"
local forward, step = flow.forward, flow.step
local function never() error "it was performed" end
local AskOp = flow.op("AskOp", never)
local machine = flow.machine {
  name = "m", start = "amount",
  reduce = function(state, result)
    local new = {}
    for key, value in pairs(state) do new[key] = value end
    for key, value in pairs(result) do new[key] = value end
    return flow.continue(new)
  end,
  step("amount", { run = never, flow.next(forward "tariff") }),
  step("tariff", { run = AskOp, flow.next(forward "confirm") }),
  step("confirm", { run = flow.new("confirm flow"):add(AskOp), flow.next(forward "done") }),
  step("done", { run = never, final = true }),
}
local PickOp = flow.op("PickOp", function(ctx) ctx:set("tariff", "t" .. ctx:get("amount", "integer")) end)
local done = {}
local replace = {
  amount = function(state, ctx)
    flow.sleep(60)
    ctx:log("asked")
    return { amount = state.country == "DE" and 7 or 0 }
  end,
  tariff = PickOp,
  confirm = { confirmed = true },
  done = done,
}
local run = testing.run(machine, { data = { country = "DE" }, replace = replace })
assert(run.ok, run.error)
check.same(run.result, { country = "DE", amount = 7, tariff = "t7", confirmed = true })
check.equal(run.duration, 60.0)
check.contains(run:summary(), "[m] asked\n", "[m] amount -> tariff\n", "[PickOp] DidFinish: successfully")
-- In flows, and with ops by their names at the same time.
run = testing.run(flow.new("f"):data { country = "DE" }:add(machine),
  { replace = { amount = { amount = 1 }, AskOp = function(ctx) ctx:set("asked", true) end, done = {} } })
assert(run.ok, run.error)
check.equal(run.data.asked, true)
-- With navigate too; a result is a new table each time.
local list = { 1 }
local walk = flow.machine {
  name = "walk", start = "a", navigate = never,
  step("a", { flow.next(forward "b") }), step("b", {}),
}
for _ = 1, 2 do
  run = testing.run(walk, { replace = { a = { list = list }, b = function(state) state.list[2] = 2 return state end } })
  check.same(run.result, { list = { 1, 2 } })
end
check.same(list, { 1 })
-- A name that is none is an error, with the step that may be meant.
check.usage(function() testing.run(machine, { replace = { amont = {} } }) end, "run", "did you mean 'amount'?")
-- An error of a replaced step is the machine's.
run = testing.run(machine, { data = {}, replace = { amount = function() error("no", 0) end } })
check.equal(run.error.message, "no")
