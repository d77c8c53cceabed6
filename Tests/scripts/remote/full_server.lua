-- When the storage of the server is full, or an item or a result is too large for it, ops fail with the reason, and none is lost.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server { config = "jetstream { max_file_store: 4MB }\n" }
local node = server:join "m1"
local prelude = [[
  local Op = flow.op("SizeOp", {
    needs = { text = "string" }, gives = { size = "integer" }, thread = "remote",
    run = function(ctx) ctx:set("size", #ctx:get "text") end,
  })
  local function try(size)
    local run = flow.new("f"):data { text = ("x"):rep(size) }:add(Op):run()
    print(run.state, run.error and run.error.message or run.data.size)
  end
]]
local full = "nats://127.0.0.1:" .. server.port .. ": insufficient resources (nats_10023)"

-- Messages of 500 KB: more at a time than there is room for. The node stands still meanwhile, or it may be as quick as
-- the script.
node:signal "STOP"
local script = server:start(prelude .. [[
  local texts, tasks = {}, {}
  for k = 1, 20 do tasks[k] = flow.new("f"):data { text = ("x"):rep(500000 + k) }:add(Op):start() end
  pcall(tasks[#tasks].await, tasks[#tasks])
  report()
  for _, task in ipairs(tasks) do pcall(task.await, task) end
  local good, reasons = 0, {}
  for k, run in ipairs(tasks) do
    if run.ok then
      assert(run.data.size == 500000 + k)
      good = good + 1
    else
      reasons[run.error.message] = true
    end
  end
  print(good > 0 and good < 20, next(reasons), next(reasons, (next(reasons))))
  -- Messages that have been handled leave room, once the node has acknowledged them.
  while not flow.new("f"):data { text = ("x"):rep(500000) }:add(Op):run().ok do flow.sleep(0.01) end
  try(500000)
]])
server:wait_for_report(script)
node:signal "CONT"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "true\t" .. full .. "\tnil\nsucceeded\t500000\n")

-- An object that is larger than all there is.
check.equal(server:run(prelude .. "try(20000000)").stdout, "failed\t" .. full .. "\n")
-- Its parts are gone. nats-server counts those of a subject as there until it is started again, up to version 2.9.14.
server:kill "TERM"
server:restart()
check.equal(server:run(prelude .. "try(1000) try(1500000)").stdout, "succeeded\t1000\nsucceeded\t1500000\n")

-- A result that is larger, of ops that end at once, meanwhile and much later.
result = server:run [[
  local fs = flow.fs
  local Op = flow.op("TextOp", {
    needs = { wait = "number", signal = "string" }, gives = { text = "string" }, thread = "remote", run = function(ctx)
      local flow = require "flow"
      ctx:log "begun"
      while not flow.fs.exists(ctx:get "signal") do flow.sleep(0.01) end
      ctx:set("text", ("x"):rep(20000000))
      flow.sleep(ctx:get "wait")
    end,
  })
  local runs, signal = {}, os.tmpname()
  os.remove(signal)
  -- All of them are on the node before a result of one fills the server.
  for k, wait in ipairs { 1000, 0.1, 0 } do
    runs[k] = flow.new("f"):data { wait = wait, signal = signal }:add(Op):start()
    while not runs[k]:summary():find("begun", 1, true) do flow.sleep(0.001) end
  end
  fs.write(signal, "")
  for _, run in ipairs(runs) do
    pcall(run.await, run)
    print(run.state, run.error.kind, (run.error.message:gsub("^%[.-%] ", "")))
  end
  fs.remove(signal)
]]
check.equal(result.stderr, "")
check.equal(result.stdout, ("failed\terror\tits result can't be sent: " .. full .. "\n"):rep(3))
