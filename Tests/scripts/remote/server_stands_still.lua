-- A server that stands still longer than leases last continues where it was: no item is lost, and only those in flight execute again.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"
server:join "m2"
local script = server:start_doubling {
  items = 60, at_once = 4, reports = { 8 },
  act = [[
      flow.fs.write(folder .. "/notes", n .. "\n", { append = true })
      flow.sleep(0.05)]],
}
server:wait_for_report(script)
server:signal "STOP"
flow.sleep(7)
server:signal "CONT"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t60\n")
local begun = 0
for _ in io.lines(server.folder .. "/notes") do begun = begun + 1 end
check.equal(begun >= 60 and begun <= 64, true, begun .. " executions of 60 items, 4 at a time")
