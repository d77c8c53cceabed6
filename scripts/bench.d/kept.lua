-- Runs whose ops are kept, with the options --keep or --resume of flowlua; the same unkept without.
--
--   kept.lua serial COUNT     ops one after another, each of which sets a value
--   kept.lua sleep COUNT      items of 1 ms, 64 at once
--   kept.lua json COUNT       items that decode 10 KB of JSON, 64 at once
--   kept.lua http COUNT URL   items that get the URL, 64 at once
--   kept.lua items COUNT      items that do nothing, 64 at once; the run stays unfinished, so that
--                             it can be resumed again
--
-- Prints the time and the CPU time of each, in microseconds.
local flow, json = require "flow", require "flow.json"
local kind, count, url = arg[1], math.tointeger(arg[2]), arg[3]

-- A group of ops that give something for their items.
local function items(type, run)
  local list = {}
  for i = 1, count do list[i] = i end
  local ItemOp = flow.op("ItemOp", {
    needs = { item = "integer" }, gives = { out = type }, run = run,
  })
  return flow.new("group"):data { list = list }
    :add_grouped(ItemOp, { input = "list", output = "out", max_concurrent = 64 })
end

local kinds = {}

function kinds.serial()
  local AddOp = flow.op("AddOp", { needs = { n = "integer" }, run = function(ctx)
    ctx:set("n", ctx:get "n" + 1)
  end })
  local blueprint = flow.new("chain"):data { n = 0 }
  for _ = 1, count do blueprint:add(AddOp) end
  return blueprint
end

function kinds.sleep()
  return items("integer", function(ctx)
    flow.sleep(0.001)
    ctx:set("out", ctx:get "item")
  end)
end

function kinds.json()
  local orders = {}
  for i = 1, 150 do
    orders[i] = { id = i, name = "order " .. i, price = i / 4, tags = { "new", "blue" } }
  end
  local text = json.encode(orders)
  return items("table", function(ctx) ctx:set("out", json.decode(text)) end)
end

function kinds.http()
  return items("string", function(ctx) ctx:set("out", flow.http(url):await().body) end)
end

function kinds.items()
  return items("integer", function(ctx) ctx:set("out", ctx:get "item") end)
end

local blueprint = kinds[kind]()
local stop = require "clock"()
local run = blueprint:run()
local wall, cpu = stop(1e6 / count)
assert(run.ok, run.error)
print(wall, cpu)
if kind == "items" then os.exit(1, true) end
