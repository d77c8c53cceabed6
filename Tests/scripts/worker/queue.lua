-- Waiting for a free worker doesn't count into an op's timeout; more ops than workers all come to their turn.
local flow = require "flow"
local check = require "check"
local SpinOp = flow.op("SpinOp", {
  timeout = 0.5, needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker", primary_input = "n",
  run = function(ctx)
    local stop = flow.now() + 0.1
    while flow.now() < stop do end -- luacheck: ignore
    ctx:set("m", ctx:get("n") + 1)
  end,
})
local ns = {}
for i = 1, 16 do ns[i] = i end
local run = flow.new("g"):data { ns = ns }
  :add_grouped(SpinOp, { input = "ns", output = "out", max_concurrent = 16 }):run()
assert(run.ok, run.error and run.error.message)
check.equal(run.data.out[16], 17)
