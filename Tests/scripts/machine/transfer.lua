-- The original example has its lines, its result and its graph, and continues as documented.
local flow, check = require "flow", require "check"
local on, forward, back = flow.on, flow.forward, flow.back

local amounts, confirmations = { 50, 200, 300 }, { "editAmount", "editTariff", "continue" }
local function answers(list)
  return function() return table.remove(list, 1) end
end
local next_amount, next_confirmation = answers(amounts), answers(confirmations)

local AskTariffOp = flow.op("AskTariffOp", function(ctx)
  ctx:set("tariff", ctx:get "amount" > 250 and "express" or "cheap")
end)

local transfer = flow.machine {
  name = "transfer",
  start = "amount",
  emit = function(result)
    if result.amount and result.amount < 100 then return "invalidAmount" end
    return result.confirmation
  end,
  reduce = function(state, result)
    local new = {}
    for key, value in pairs(state) do new[key] = value end
    for key, value in pairs(result) do new[key] = value end
    new.confirmation = nil
    return flow.continue(new)
  end,
  flow.any_step { on("error", forward "alert") },
  flow.step("amount", {
    run = function() return { amount = next_amount() } end,
    on("invalidAmount", forward "invalidAmount"), flow.next(forward "tariffs"),
  }),
  flow.step("invalidAmount", { run = function() return { amount = 100 } end, flow.next(back()) }),
  flow.step("tariffs", { run = AskTariffOp, flow.next(forward "confirmation") }),
  flow.step("confirmation", {
    run = function(state, ctx)
      ctx:log("asked for", state.amount)
      return { confirmation = next_confirmation() }
    end,
    on("editAmount", back "amount"), on("editTariff", back()), on("continue", forward "success"),
  }),
  flow.step("success", { run = function() return {} end, flow.next(forward "finish") }),
  flow.step("finish", { run = function() return {} end }),
  flow.step("alert", { run = function() return {} end }),
}
check.equal(tostring(transfer), "machine: transfer")
check.equal(transfer.name, "transfer")

local run = transfer:start { country = "DE" }
check.equal(run.state, "succeeded")
check.same(run.result, { country = "DE", amount = 300, tariff = "express" })
check.equal(run:await(), run.result, "the awaited value")
check.same(run.data, run.result)
check.summary(run, [[
====== Flow Summary ======
T [DataBucket] start with:
country: DE
T [transfer] WillStart
T [transfer] state: {amount = 50, country = DE}
T [transfer] amount -> invalidAmount on invalidAmount
T [transfer] state: {amount = 100, country = DE}
T [transfer] invalidAmount -> amount
T [transfer] state: {amount = 200, country = DE}
T [transfer] amount -> tariffs
T [AskTariffOp] WillStart
T [AskTariffOp] DidFinish: successfully
T [transfer] state: {amount = 200, country = DE, tariff = cheap}
T [transfer] tariffs -> confirmation
T [transfer] asked for 200
T [transfer] confirmation -> amount on editAmount
T [transfer] state: {amount = 300, country = DE, tariff = cheap}
T [transfer] amount -> tariffs
T [AskTariffOp] WillStart
T [AskTariffOp] DidFinish: successfully
T [transfer] state: {amount = 300, country = DE, tariff = express}
T [transfer] tariffs -> confirmation
T [transfer] asked for 300
T [transfer] confirmation -> tariffs on editTariff
T [AskTariffOp] WillStart
T [AskTariffOp] DidFinish: successfully
T [transfer] tariffs -> confirmation
T [transfer] asked for 300
T [transfer] confirmation -> success on continue
T [transfer] success -> finish
T [DataBucket] add for amount: 300
T [DataBucket] replace for country: DE -> DE
T [DataBucket] add for tariff: express
T [transfer] DidFinish: successfully
T [DataBucket] end with:
country: DE
amount: 300
tariff: express
Flow isSuccess: true
======    Ending    ======
]])

local events = {}
for _, event in ipairs(run:events()) do
  if event.kind == "transition" then
    check.equal(event.op, "transfer")
    events[#events + 1] = event.message
  end
end
check.equal(#events, 11)
check.equal(events[1], "amount -> invalidAmount on invalidAmount")

-- Entered with a result from elsewhere.
local continued = transfer:continue("success", {}, { amount = 7 })
check.same(continued.result, { amount = 7 })
check.equal(transfer:continue("tariffs", { tariff = "x" }, {}).error.kind, "usage")

check.equal(transfer:dot(), [[
strict digraph {
	rankdir=LR
	node [shape=box]

	"*" -> alert [label="on error"]
	amount -> invalidAmount [label="on invalidAmount"]
	amount -> tariffs
	invalidAmount -> amount
	tariffs -> confirmation
	confirmation -> amount [label="on editAmount"]
	confirmation -> tariffs [label="on editTariff"]
	confirmation -> success [label="on continue"]
	success -> finish
}
]])
check.equal(transfer:dot { rankdir = "LR", shape = "box", strict = true }, transfer:dot())
check.contains(transfer:dot { rankdir = "TB", shape = "my shape", strict = false },
  "digraph {\n\trankdir=TB\n\tnode [shape=\"my shape\"]\n")
check.lacks(transfer:dot { strict = false }, "strict")
check.contains(transfer:mermaid(), "stateDiagram-v2\n", "state \"amount\" as s2\n", "[*] --> s2\n",
  "s5 --> s2 : on editAmount\n", "s7 --> [*]\n")
