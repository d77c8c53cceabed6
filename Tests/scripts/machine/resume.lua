-- A machine continues at a saved step with its saved history, and back leads to the earlier step.
local flow, check = require "flow", require "check"
local forward, back, on, step = flow.forward, flow.back, flow.on, flow.step
local performed, saved, answer = {}, {}, {}
local CountOp = flow.op("CountOp", function(ctx) performed[#performed + 1] = "tariffs" ctx:set("event", nil) end)
local function screen(name)
  return function(state, ctx)
    performed[#performed + 1] = name
    saved = { state = state, history = ctx.history }
    return { [name] = true, event = table.remove(answer, 1), n = state.n }
  end
end
local shop = flow.machine {
  name = "shop", start = "amount",
  emit = function(result) return result.event end,
  step("amount", { run = screen "amount", flow.next(forward "tariffs") }),
  step("tariffs", { run = CountOp, flow.next(forward "confirmation") }),
  step("confirmation", { run = screen "confirmation", on("edit", back "amount"), on("again", back()),
    flow.next(forward "done") }),
  step("done", { run = screen "done" }),
}
local function begins(run, ...)
  assert(run.ok, run.error)
  check.same(performed, { ... })
  performed = {}
end

begins(shop:run { n = 1 }, "amount", "tariffs", "confirmation", "done")
check.same(saved.history, { "amount", "tariffs", "confirmation", "done" })

-- At a step: it is performed once, an op too, and the history begins with it.
local run = shop:run({ n = 1 }, { at = "tariffs" })
begins(run, "tariffs", "confirmation", "done")
check.same(run.history, { "tariffs", "confirmation", "done" })
run = shop:start({}, { at = "done" })
begins(run, "done")
-- Without history there is no way back.
answer = { "edit" }
run = shop:run({}, { at = "confirmation" })
check.contains(run.error.message, "to step 'amount', which wasn't entered before")
check.same(run.history, { "confirmation" })
performed = {}

-- With it, as often as it is saved: it continues at the last step, named or not.
answer = { "edit", nil, nil }
run = shop:run({ n = 2 }, { at = "confirmation", history = { "amount", "tariffs" } })
begins(run, "confirmation", "amount", "tariffs", "confirmation", "done")
check.same(run.history, { "amount", "tariffs", "confirmation", "done" })
for _ = 1, 3 do
  answer = { "again" }
  run = shop:run(saved.state, { history = { table.unpack(run.history, 1, 3) } })
  begins(run, "confirmation", "tariffs", "confirmation", "done")
end
run = shop:run({}, { at = "done", history = { "amount", "done" } })
begins(run, "done")
check.same(run.history, { "amount", "done" })

-- continue begins its history with the step, unless it is given one.
run = shop:continue("confirmation", { event = "edit" }, {})
check.contains(run.error.message, "which wasn't entered before")
run = shop:continue("confirmation", { event = "edit" }, {}, { history = { "amount", "tariffs" } })
begins(run, "amount", "tariffs", "confirmation", "done")
run = shop:continue("confirmation", { event = "again" }, {}, { history = run.history and { "amount", "tariffs", "confirmation" } })
begins(run, "tariffs", "confirmation", "done")

-- Only machines have one.
check.equal(flow.op("PlainOp", function(ctx) check.equal(ctx.history, nil) end):run().history, nil)

-- Mistakes.
check.usage(function() shop:start({}, { at = "tarifs" }) end, "start", "field 'at'", "no step 'tarifs' (did you mean 'tariffs'?)")
check.usage(function() shop:run({}, { history = { "amount", "x" } }) end, "run", "field 'history'", "no step 'x'")
check.usage(function() shop:start({}, { history = { {} } }) end, "start", "field 'history'", "list of names")
check.usage(function() shop:start({}, { step = "amount" }) end, "start", "'step'")
check.usage(function() shop:continue("done", {}, {}, { at = "done" }) end, "continue", "'at'")
