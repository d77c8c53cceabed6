-- Two ops, one after the other: the smallest flow.
local flow = require "flow"

local SimplePrintOp = flow.op("SimplePrintOp", function(ctx, message)
  ctx:log(message)
end)

flow.new("simple")
  :add(SimplePrintOp("hello world"))
  :add(SimplePrintOp("good bye"))
  :will_start(function(run) print(run.name .. " starts") end)
  :did_finish(function(run) io.write(run:summary()) end)
  :run()
