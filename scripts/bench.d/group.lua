-- A group of arg[1] trivial Lua ops, three at a time. Prints ns an item.
local flow = require "flow"
local n = tonumber(arg[1])
local DoubleOp = flow.op("DoubleOp", {
  needs = { item = "integer" },
  gives = { doubled = "integer" },
  run = function(ctx) ctx:set("doubled", ctx:get("item") * 2) end,
})
local items = {}
for i = 1, n do items[i] = i end
local blueprint = flow.new("group")
  :data { items = items }
  :add_grouped(DoubleOp, flow.dispatcher {
    input = "items", output = "doubled", max_concurrent = 3,
  })
collectgarbage()
local before = flow.now()
local run = blueprint:run()
local elapsed = flow.now() - before
assert(run.ok and #run.data.doubled == n and run.data.doubled[n] == 2 * n)
print(elapsed / n * 1e9)
