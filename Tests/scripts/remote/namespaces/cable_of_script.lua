-- A script whose cable is pulled for longer than leases last continues when it is back: no item is lost.
-- clock: real: other processes execute the ops, and leases end
local check, flow, network, remote = require "check", require "flow", require "network", require "remote"

local net <close> = network.enter { "queue", "script", "m1" }
if not net then return end
local server <close> = remote.server { network = net }
server:join "m1"
-- Number 5 ends when the cable is back.
local script = server:start_doubling {
  items = 60, at_once = 8, reports = { 9 },
  act = [[while n == 5 and not flow.fs.exists(folder .. "/go") do flow.sleep(0.02) end flow.sleep(0.02)]],
}
server:wait_for_report(script)
net:unplug "script"
-- The others that are on the node end meanwhile.
flow.sleep(6)
net:plug "script"
io.open(server.folder .. "/go", "w"):close()
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t60\n")
