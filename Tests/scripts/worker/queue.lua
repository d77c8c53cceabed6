-- The wait for a free worker doesn't count towards a timeout, and every op gets its turn.
local host = require "host"
local check = require "check"
-- Together they take longer than the timeout of one.
local result = host.script([[
local flow = require "flow"
local SpinOp = flow.op("SpinOp", {
  timeout = 2, needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker", primary_input = "n",
  run = function(ctx)
    local stop = flow.now() + 0.15
    while flow.now() < stop do end
    ctx:set("m", ctx:get("n") + 1)
  end,
})
local ns = {}
for i = 1, 16 do ns[i] = i end
local run = flow.new("g"):data { ns = ns }
  :add_grouped(SpinOp, { input = "ns", output = "out", max_concurrent = 16 }):run()
assert(run.ok, run.error)
assert(run.duration > 2)
print(run.data.out[16])
]], {}, { before = { "--workers", "1" } })
check.equal(result.stderr, "")
check.equal(result.stdout, "17\n")
