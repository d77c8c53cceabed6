-- A group runs five thousand items, some of which wait.
local flow, check = require "flow", require "check"
local list = {}
for i = 1, 5000 do list[i] = i end
local EchoOp = flow.op("EchoOp", {
  needs = { n = "integer" }, gives = { out = "integer" },
  run = function(ctx)
    if ctx.index % 50 == 0 then flow.sleep(0.0001) end
    ctx:set("out", -ctx:get("n"))
  end,
})
local run = flow.new("large"):data { list = list }
  :add_grouped(EchoOp, { input = "list", output = "out", max_concurrent = 10 }):run()
assert(run.ok, run.error)
for i = 1, 5000 do check.equal(run.data.out[i], -i) end
