-- A script whose cable is pulled for longer than leases last continues when it is back: no item is lost.
-- clock: real: other processes execute the ops, and leases end
local check, flow, network, remote = require "check", require "flow", require "network", require "remote"

local net <close> = network.enter { "queue", "script", "m1" }
if not net then return end
local server <close> = remote.server { network = net }
server:join "m1"
-- Number 5 ends when the cable is back.
local script = server:start(([[
  local Op = flow.op("WorkOp", { needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote", run = function(ctx)
    local flow, n = require "flow", ctx:get "n"
    while n == 5 and not flow.fs.exists(%q) do flow.sleep(0.02) end
    flow.sleep(0.02)
    ctx:set("r", n * 2)
  end })
  local list = {}
  for k = 1, 60 do list[k] = k end
  local run = flow.new("work"):data { ns = list }
    :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 8 }):start()
  while finished(run) < 9 do flow.sleep(0.001) end
  report()
  run:wait()
  local good = 0
  for k, r in ipairs(run.data.rs) do if r == 2 * k then good = good + 1 end end
  print(run.state, run.error, good)
]]):format(server.folder .. "/go"))
server:wait_for_report(script)
net:unplug "script"
-- The others that are on the node end meanwhile.
flow.sleep(6)
net:plug "script"
io.open(server.folder .. "/go", "w"):close()
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t60\n")
