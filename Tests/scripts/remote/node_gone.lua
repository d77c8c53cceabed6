-- The error of an op that no node executes any more says where it was lost.
-- clock: real: other processes execute the ops
local check = require "check"
local remote = require "remote"

local server <close> = remote.server()
server:join "m1"
local running = server:start([[
  local Op = flow.op("Op", { thread = "remote", run = function(ctx) ctx:log "began" flow.sleep(3600) end })
  local run = flow.new("f"):add(Op):start()
  local function began()
    for _, event in ipairs(run:events()) do if event.kind == "log" then return true end end
  end
  while not began() do flow.sleep(0.001) end
  report()
  run:wait()
  print(run.state, run.error.message)
]], "--remote-timeout", "0.5")
server:wait_for_report(running)
server.nodes[1]:signal "KILL"
local result = running:await()
check.equal(result.stderr, "")
check.match(result.stdout, "^failed\tno node that has joined [^\n]*; it was lost in 'm1/1' %(waited 0.5s; ")
