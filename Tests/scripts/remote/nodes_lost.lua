-- Jobs of a node that is killed, or stands still, execute on another one after their lease; no item is lost or kept twice.
-- clock: real: other processes execute the ops
local check = require "check"
local flow = require "flow"
local remote = require "remote"

local server <close> = remote.server()
local first, second = server:join "m1", server:join "m2"

local script = server:start [[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      require "flow".sleep(0.05)
      ctx:set("r", ctx:get "n" * 2)
    end,
  })
  local list = {}
  for k = 1, 120 do list[k] = k end
  local run = flow.new("work"):data { ns = list }
    :add_grouped(Op, { input = "ns", output = "rs", max_concurrent = 4 }):start()
  while finished(run) < 10 do flow.sleep(0.001) end
  report()
  run:await()
  local good, starts, lost = 0, 0, 0
  for k, r in ipairs(run.data.rs) do if r == 2 * k then good = good + 1 end end
  for _, event in ipairs(run:events()) do
    if event.kind == "log" and event.message:find "is gone" then lost = lost + 1 end
  end
  print(run.state, good, lost > 0 and lost <= 8)
]]
server:wait_for_report(script)
first:signal "KILL"
flow.sleep(0.3)
-- It continues when its jobs are elsewhere: nothing that it then reports counts.
local third = server:join "m3"
second:signal "STOP"
flow.sleep(7)
second:signal "CONT"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\t120\ttrue\n")
third:signal "TERM"
check.equal(third:wait(), 0)
