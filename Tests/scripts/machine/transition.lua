-- machine:transition returns the next transition without performing it.
local flow, check = require "flow", require "check"
local forward, back, on, step = flow.forward, flow.back, flow.on, flow.step
local function never() error "it was performed" end
local machine = flow.machine {
  name = "transfer", start = "amount",
  emit = function(result) flow.sleep(0.001) return result.event end,
  reduce = function(state, result)
    if result.stop then return flow.finish(result.stop) end
    if result.again then return flow.retry() end
    return flow.continue { n = (state.n or 0) + (result.n or 0) }
  end,
  flow.any_step { on("error", forward "alert") },
  step("amount", { run = never, on("small", flow.stay()), flow.next(forward "confirm") }),
  step("confirm", { run = never, on("edit", back "amount"), on("back", back()), flow.next(forward "done") }),
  step("alert", { run = never, final = true }),
  step("done", { run = never, final = true }),
}
local function follows(name, result, state)
  local transition, new = machine:transition(name, result, state or { n = 1 })
  return transition and transition.kind, transition and transition.step, new
end
local function same(expected, ...) check.same({ n = select("#", ...), ... }, expected) end
same({ n = 3, "forward", "confirm", { n = 6 } }, follows("amount", { n = 5 }))
same({ n = 3, "stay", nil, { n = 1 } }, follows("amount", { event = "small" }))
same({ n = 3, "back", "amount", { n = 1 } }, follows("confirm", { event = "edit" }))
same({ n = 3, "back", nil, { n = 1 } }, follows("confirm", { event = "back" }))
same({ n = 3, "forward", "alert", { n = 1 } }, follows("confirm", { event = "error" }))
same({ n = 3, nil, nil, { n = 3 } }, follows("done", { n = 2 }))
same({ n = 3, nil, nil, "value" }, follows("amount", { stop = "value" }))
same({ n = 3, "retry", nil, { n = 1 } }, follows("amount", { again = true }))
-- A transition that would fail raises, and no run is reported anywhere.
local raised = check.raises(function() machine:transition("amount", { event = "odd" }, {}) end,
  "no transition on event 'odd' for step 'amount'")
check.equal(raised.kind, "usage")
check.usage(function() machine:transition("amont", {}, {}) end, "transition", "did you mean 'amount'?")
check.raises(function() machine:transition("amount", nil, {}) end, "attempt to index")

-- In ops, at the same time; and of a machine whose transitions a function says.
local open = flow.machine {
  name = "open", start = "a", navigate = never,
  transition = function(at, result) return result > 0 and forward(at .. result) or nil end,
}
local AskOp = flow.op("AskOp", function(ctx, n)
  local transition, state = open:transition("a", n, nil)
  ctx:set("step", transition and transition.step or "end")
  check.equal(state, n)
  same({ n = 3, "forward", "confirm", { n = 6 } }, follows("amount", { n = 5 }))
end)
local run = AskOp(3):run()
assert(run.ok, run.error)
check.equal(run.data.step, "a3")
check.lacks(run:summary(), "open")
check.equal(AskOp(0):run().data.step, "end")
-- It stops with the op that asks.
local slow = flow.machine { name = "slow", start = "a", emit = function() flow.sleep(100) end, step("a", { run = never }) }
run = flow.op("SlowOp", { timeout = 5, run = function() slow:transition("a", 1, 1) end }):run()
check.equal(run.error.kind, "timeout")
