-- The timeline of a run of arg[1] items in the file arg[2]; needs --virtual-clock. Prints the ms of
-- time and of CPU time that making and writing it takes, and its MB.
local flow, fs = require "flow", require "flow.fs"
local n, file = tonumber(arg[1]), arg[2]
local ItemOp = flow.op("ItemOp", {
  needs = { item = "integer" },
  retry = { attempts = 2, delay = 0.001 },
  run = function(ctx)
    local item = ctx:get "item"
    -- Lengths of all sizes: each has its digits in the page.
    flow.sleep((item * 7919 % 10007) / 1e5)
    if item % 1000 == 0 and ctx.attempt == 1 then ctx:fail "try again" end
    if item % 2500 == 1 then ctx:fail("too large", { retry = false }) end
  end,
})
local items = {}
for i = 1, n do items[i] = i end
local run = flow.new("timeline"):data { items = items }
  :add_grouped(ItemOp, { input = "items", max_concurrent = 8, allow_failure = true })
  :run()
collectgarbage()
local stop = require "clock"()
run:timeline(file)
print(stop(1e3))
print(fs.stat(file).size / 1e6)
