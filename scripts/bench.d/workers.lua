-- What ops in workers take; arg[1] says which:
--
--   cpu_main  64 ops of about 20 ms of Lua code on the main thread. Prints ms for all.
--   cpu       the same in workers, one for each core. Prints ms for all.
--   trivial   100,000 items that do next to nothing, in 3 workers. Prints ns an item.
--   strings   1,000 items with a string of 10 KB, there and back. Prints us an item.
--   tables    1,000 items with a table of 1,000 numbers, there and back. Prints us an item.
local flow = require "flow"
local mode = arg[1]

local function spin()
  local sum = 0
  for i = 1, 2000000 do sum = sum + i % 7 end
  return sum
end

local function measure(op, items, options)
  options.input, options.output = "items", "results"
  local run = flow.new("bench"):data { items = items }:add_grouped(op, options)
  local before = flow.now()
  local settled = run:run()
  local elapsed = flow.now() - before
  assert(settled.ok, settled.error)
  assert(#settled.data.results == #items)
  return elapsed, settled.data.results
end

local function op(thread, run)
  return flow.op("BenchOp",
    { needs = { item = "any" }, gives = { result = "any" }, thread = thread, run = run })
end

local function cpu(thread)
  local items = {}
  for i = 1, 64 do items[i] = i end
  local SpinOp = op(thread, function(ctx) ctx:set("result", spin()) end)
  return (measure(SpinOp, items, { max_concurrent = 64 })) * 1e3
end

local measures = {}

function measures.cpu_main() return cpu("main") end

function measures.cpu() return cpu("worker") end

-- The workers are started, and have the code, before the clock runs.
local function echo(items)
  local EchoOp = op("worker", function(ctx) ctx:set("result", ctx:get("item")) end)
  measure(EchoOp, { 1, 2, 3 }, { max_concurrent = 3 })
  local elapsed, results = measure(EchoOp, items, { max_concurrent = 3 })
  return elapsed / #items, results
end

function measures.trivial()
  local items = {}
  for i = 1, 100000 do items[i] = i end
  local time, results = echo(items)
  assert(results[77777] == 77777)
  return time * 1e9
end

function measures.strings()
  local items = {}
  for i = 1, 1000 do items[i] = ("%05d"):format(i):rep(2048) end
  local time, results = echo(items)
  assert(results[500] == items[500])
  return time * 1e6
end

function measures.tables()
  local items = {}
  for i = 1, 1000 do
    items[i] = {}
    for k = 1, 1000 do items[i][k] = i + k end
  end
  local time, results = echo(items)
  assert(results[500][1000] == 1500)
  return time * 1e6
end

print(measures[mode]())
