-- flow.op(name, function) passes ctx first, then the bound arguments.
local flow, check = require "flow", require "check"
local seen
local GreetOp = flow.op("GreetOp", function(ctx, ...)
  seen = table.pack(...)
  ctx:log(ctx.name, ctx.attempt, ctx.index)
end)
local run = flow.new("greet"):add(GreetOp("hello", nil, 3, nil)):run()
check.equal(run.ok, true)
check.equal(seen.n, 4)
check.same({ seen[1], seen[2], seen[3], seen[4] }, { "hello", nil, 3 })
check.contains(run:summary(), "[GreetOp] GreetOp 1 nil")
