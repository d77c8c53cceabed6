-- Timeouts and cancellations stop remote ops, busy or waiting, at once; their cleanups run there.
-- clock: real: other processes execute the ops
local check = require "check"
local remote = require "remote"

local server <close> = remote.server()
server:join "m1"

local result = server:run [[
  local Busy = flow.op("BusyOp", { thread = "remote", timeout = 0.2, run = function() while true do end end })
  local run = flow.new("busy"):add(Busy):run()
  print(run.state, run.error.kind)

  local Waits = flow.op("WaitsOp", {
    thread = "remote",
    run = function(ctx)
      ctx:defer(function() ctx:log "cleaned" end)
      ctx:log "began"
      require "flow".sleep(100)
    end,
  })
  local run = flow.new("waiting"):add(Waits):start()
  local function lines()
    local list = {}
    for _, event in ipairs(run:events()) do
      if event.kind == "log" then list[#list + 1] = event.message end
    end
    return table.concat(list, " ")
  end
  while lines() == "" do flow.sleep(0.001) end
  local before = flow.now()
  run:cancel "enough"
  pcall(run.await, run)
  print(run.state, run.error.message, lines(), flow.now() - before < 5)

  -- Items that wait in the queue have no time yet, and are gone after a cancellation.
  local Slow = flow.op("SlowOp", { needs = { n = "integer" }, thread = "remote", timeout = 60,
    run = function() while true do end end })
  local list = {}
  for k = 1, 20 do list[k] = k end
  local run = flow.new("many"):data { ns = list }:add_grouped(Slow, { input = "ns", max_concurrent = 20 }):start()
  flow.sleep(0.3)
  run:cancel()
  pcall(run.await, run)
  print(run.state)
  -- The node is free again.
  local Quick = flow.op("QuickOp", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 1) end })
  print(flow.new("quick"):add(Quick):run().data.r)
]]
check.equal(result.stderr, "")
check.equal(result.stdout, [[
failed	timeout
cancelled	cancelled: enough	began cleaned	true
cancelled
1
]])
