-- A killed server that is started again continues where it stopped, also if it has forgotten who receives the reports.
-- clock: real: other processes execute the ops
local check = require "check"
local flow = require "flow"
local remote = require "remote"

local server <close> = remote.server()
server:join "m1"
-- The disturbances once four items have ended.
local disturbances = {
  function()
    server:kill()
    flow.sleep(0.5)
    server:restart()
  end,
  function()
    local name = server:request "$JS.API.CONSUMER.NAMES.FLOWLUA_NEWS":match '"(script%-[^"]+)"'
    check.contains(server:request("$JS.API.CONSUMER.DELETE.FLOWLUA_NEWS." .. name), '"success":true')
  end,
}
for _, disturb in ipairs(disturbances) do
  local program = server:start_doubling { items = 100, at_once = 4, reports = { 4 }, act = "flow.sleep(0.02)" }
  server:wait_for_report(program)
  disturb()
  local result = program:await()
  check.equal(result.stderr, "")
  check.equal(result.stdout, "succeeded\tnil\t100\n")
end

-- Without a server a signal ends the script as usual: it doesn't wait for what the node says of the op that it stops.
local program = server:start(([[
  local Op = flow.op("WorkOp", { thread = "remote", run = function(ctx) ctx:log "begun" require "flow".sleep(3600) end })
  local run = flow.new("work"):add(Op):start()
  repeat flow.sleep(0.01) until run:summary():find "begun"
  report()
  repeat flow.sleep(0.01) until flow.fs.exists(%q)
  os.execute "kill -TERM $PPID"
  run:wait()
]]):format(server.folder .. "/gone"), "--remote-timeout", "3600", "--grace", "3600")
server:wait_for_report(program)
server:kill()
io.open(server.folder .. "/gone", "w"):close()
check.equal(program:await().signal, 15)
