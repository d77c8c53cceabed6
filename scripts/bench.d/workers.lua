-- Groups in workers: `workers.lua KIND COUNT THREAD`, with --workers as the caller likes. Prints
-- the time and the CPU time of an item: in the first group, which starts the workers, in the second
-- one, and the medians of the third to the seventh. They are nanoseconds of trivial items,
-- microseconds of 10 KB strings and of tables of 1,000 numbers there and back, milliseconds of
-- items that compute for about 20 ms.
local flow = require "flow"
local kind, count, thread = arg[1], tonumber(arg[2]), arg[3] or "worker"

local kinds = {
  trivial = {
    unit = 1e9,
    item = function(i) return i end,
    run = function(ctx) ctx:set("result", ctx:get("item") + 1) end,
    check = function(result, i) return result == i + 1 end,
  },
  string = {
    unit = 1e6,
    item = function(i) return string.char(i % 256):rep(10240) end,
    run = function(ctx) ctx:set("result", ctx:get("item")) end,
    check = function(result) return #result == 10240 end,
  },
  table = {
    unit = 1e6,
    item = function(i)
      local numbers = {}
      for k = 1, 1000 do numbers[k] = k + i end
      return numbers
    end,
    run = function(ctx) ctx:set("result", ctx:get("item")) end,
    check = function(result, i) return #result == 1000 and result[1000] == 1000 + i end,
  },
  compute = {
    unit = 1e3,
    item = function(i) return i end,
    run = function(ctx)
      local sum = 0
      for k = 1, 2500000 do sum = sum + k % 7 end
      ctx:set("result", sum)
    end,
    check = function(result) return result > 0 end,
  },
}

local chosen = assert(kinds[kind], "no such kind")
local ItemOp = flow.op("ItemOp", {
  needs = { item = "any" }, gives = { result = "any" }, thread = thread, run = chosen.run,
})
local items = {}
for i = 1, count do items[i] = chosen.item(i) end
local blueprint = flow.new("group")
  :data { items = items }
  :add_grouped(ItemOp, { input = "items", output = "results", max_concurrent = 3 })
local run
require "rounds"(chosen.unit / count, function() run = blueprint:run() end, function()
  assert(run.ok, run.error)
  for i = 1, count do assert(chosen.check(run.data.results[i], i)) end
end)
