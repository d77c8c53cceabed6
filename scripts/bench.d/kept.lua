-- Runs whose ops are kept, with the options --keep or --resume of flowlua; the same unkept without.
--
--   kept.lua serial COUNT   ops one after another, each of which sets a value: microseconds of one
--   kept.lua group COUNT    items of 1 ms, 64 at once: the time of all, in milliseconds
--   kept.lua items COUNT    items that do nothing: the time of all, in milliseconds; the run stays
--                           unfinished, so that it can be resumed again
local flow = require "flow"
local kind, count = arg[1], math.tointeger(arg[2])

local function items(op, limit)
  local list = {}
  for i = 1, count do list[i] = i end
  return flow.new("group"):data { list = list }
    :add_grouped(op, { input = "list", output = "out", max_concurrent = limit })
end

local blueprint
if kind == "serial" then
  local AddOp = flow.op("AddOp", { needs = { n = "integer" }, run = function(ctx)
    ctx:set("n", ctx:get "n" + 1)
  end })
  blueprint = flow.new("chain"):data { n = 0 }
  for _ = 1, count do blueprint:add(AddOp) end
elseif kind == "group" then
  blueprint = items(flow.op("SleepOp", {
    needs = { item = "integer" }, gives = { out = "integer" },
    run = function(ctx)
      flow.sleep(0.001)
      ctx:set("out", ctx:get "item")
    end,
  }), 64)
else
  blueprint = items(flow.op("ItemOp", {
    needs = { item = "integer" }, gives = { out = "integer" },
    run = function(ctx) ctx:set("out", ctx:get "item") end,
  }), 64)
end

local before = flow.now()
local run = blueprint:run()
local elapsed = flow.now() - before
assert(run.ok, run.error)
print(kind == "serial" and elapsed * 1e6 / count or elapsed * 1e3)
if kind == "items" then os.exit(1, true) end
