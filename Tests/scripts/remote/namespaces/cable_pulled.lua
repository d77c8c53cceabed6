-- A node whose cable is pulled ends its programs and begins nothing, its items execute elsewhere, and it returns with the cable.
-- clock: real: other processes execute the ops, and leases end
local check, flow, network, remote = require "check", require "flow", require "network", require "remote"

local net <close> = network.enter { "queue", "script", "m1", "m2" }
if not net then return end
local server <close> = remote.server { network = net }
server:join("m1", "--tags", "first")

-- Items that never end on m1, and at once elsewhere.
local MARKER = "cable-pulled-" .. server.port
local script = server:start(([[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer", marker = "string" }, gives = { square = "integer" }, thread = "remote",
    run = function(ctx)
      local flow = require "flow"
      if ctx.lane:find "^m1" then flow.exec({ "sh", "-c", "sleep 3600; :", ctx:get "marker" }):await() end
      ctx:set("square", ctx:get "n" * ctx:get "n")
    end,
  })
  local list = {}
  for k = 1, 8 do list[k] = k end
  local run = flow.new("work"):data { ns = list, marker = %q }
    :add_grouped(Op, { input = "ns", as = "n", output = "squares", max_concurrent = 8 }):run()
  local lost = 0
  for _, event in ipairs(run:events()) do
    if event.kind == "log" and event.message:find "m1 is gone" then lost = lost + 1 end
  end
  print(run.state, run.error, run.data.squares and table.concat(run.data.squares, " "), lost > 0)
]]):format(MARKER))
-- The programs, and the shells' own processes.
local function programs() return network.processes("sleep 3600; : " .. MARKER) end
local function wait_for(count)
  for _ = 1, 6000 do
    if programs() == count then return end
    flow.sleep(0.02)
  end
  error(("%d programs, not %d"):format(programs(), count), 2)
end
while programs() < 2 do flow.sleep(0.01) end
server:join("m2")
net:unplug "m1"
local from = flow.now()
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t1 4 9 16 25 36 49 64\ttrue\n")

-- It begins nothing more, and nothing is left there.
wait_for(0)
local alone = flow.now() - from
local waiting = server:start(([[
  local Op = flow.op("FirstOp", { thread = "remote", tags = "first", gives = { lane = "string" }, run = function(ctx)
    local file = assert(io.open(%q, "a"))
    file:write "begun\n"
    file:close()
    ctx:set("lane", ctx.lane:match "^%%w+")
  end })
  local run = flow.new("f"):add(Op):start()
  flow.sleep(1)
  report()
  run:await()
  print(run.state, run.data.lane)
]]):format(server.folder .. "/begun"))
server:wait_for_report(waiting)
check.equal(io.open(server.folder .. "/begun"), nil)
net:plug "m1"
result = waiting:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tm1\n")
-- It hears for 10 s nothing of the server, and looks every 2 s.
if not os.getenv "FLOWLUA_SANITIZER" then assert(alone < 15, alone) end
if arg[1] == "report" then print(("its programs ended %.1f s after the cable was pulled"):format(alone)) end
