-- Ops on other nodes, with the option --remote of flowlua.
--
--   remote.lua items COUNT         items that do nothing: prints the microseconds of each
--   remote.lua trip COUNT          ops one after another: prints the microseconds of each
--   remote.lua sleep COUNT MS      items that occupy a worker for so long: prints the ms of all
--   remote.lua file PATH           an op that needs a file: prints the milliseconds
--   remote.lua killed NAME PID     kills a node with items: prints the milliseconds until they
--                                  execute elsewhere
--
-- Prints the CPU time of the script as well.
local flow = require "flow"
local kind, first, second = arg[1], arg[2], arg[3]

local function group(Op, items, concurrent)
  return flow.new("group"):data { items = items }:add_grouped(Op, {
    input = "items", as = "item", output = "results", max_concurrent = concurrent,
  })
end

local function numbers(count)
  local list = {}
  for i = 1, count do list[i] = i end
  return list
end

local function run(blueprint)
  local ended = blueprint:run()
  assert(ended.ok, ended.error)
  return ended
end

local NextOp = flow.op("NextOp", {
  needs = { item = "integer" }, gives = { result = "integer" }, thread = "remote",
  run = function(ctx) ctx:set("result", ctx:get "item" + 1) end,
})

local kinds = {}

function kinds.items()
  local count = math.tointeger(first)
  -- The nodes get the code, and start their workers.
  run(group(NextOp, numbers(100), 100))
  local items = group(NextOp, numbers(count), 1024)
  local stop = require "clock"()
  local ended = run(items)
  print(stop(1e6 / count))
  for i = 1, count do assert(ended.data.results[i] == i + 1) end
end

function kinds.trip()
  local count = math.tointeger(first)
  local blueprint = flow.new("chain"):data { item = 1 }
  for _ = 1, count do blueprint:add(NextOp) end
  run(group(NextOp, numbers(20), 1))
  local stop = require "clock"()
  run(blueprint)
  print(stop(1e6 / count))
end

function kinds.sleep()
  local count = math.tointeger(first)
  -- Not flow.sleep, with which others execute on the same worker meanwhile.
  local SleepOp = flow.op("SleepOp", {
    needs = { item = "integer", ms = "integer" }, gives = { result = "integer" }, thread = "remote",
    run = function(ctx)
      require "luv".sleep(ctx:get "ms")
      ctx:set("result", ctx:get "item")
    end,
  })
  local ms = math.tointeger(second)
  local function sleeps(n) return group(SleepOp, numbers(n), 256):data { ms = ms } end
  run(sleeps(60))
  local stop = require "clock"()
  run(sleeps(count))
  print(stop(1e3))
end

function kinds.file()
  local SizeOp = flow.op("SizeOp", {
    needs = { file = "file" }, gives = { size = "integer" }, thread = "remote",
    run = function(ctx) ctx:set("size", require "flow.fs".stat(ctx:get "file").size) end,
  })
  run(flow.new("none"):data { item = 1 }:add(NextOp))
  local stop = require "clock"()
  local ended = run(flow.new("file"):data { file = first }:add(SizeOp))
  print(stop(1e3))
  assert(ended.data.size == flow.fs.stat(first).size)
end

function kinds.killed()
  local HangOp = flow.op("HangOp", {
    needs = { item = "integer", lost = "string" }, gives = { result = "integer" },
    thread = "remote",
    run = function(ctx)
      if ctx.lane:match "^[^/]+" == ctx:get "lost" then
        ctx:log "hangs"
        require "flow".sleep(1000)
      end
      ctx:set("result", ctx:get "item")
    end,
  })
  local started = group(HangOp, numbers(64), 64):data { lost = first }:start()
  local function hangs()
    for _, event in ipairs(started:events()) do if event.kind == "log" then return true end end
  end
  while not hangs() do flow.sleep(0.001) end
  assert(os.execute("kill -9 " .. second))
  local stop = require "clock"()
  started:await()
  print(stop(1e3))
  assert(started.ok, started.error)
end

kinds[kind]()
