-- A script that stands still longer than leases last continues where it was: all items finish, and none is lost.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"
server:join "m2"
-- An item notes its end, and item 10 does so after the stop.
local script = server:start_doubling {
  items = 80, at_once = 8, reports = { 9 }, first = [[os.execute("echo $PPID >" .. folder .. "/pid")]],
  act = [[
      while n == 10 and not flow.fs.exists(folder .. "/go") do flow.sleep(0.02) end
      flow.sleep(0.05)
      flow.fs.write(folder .. "/done", n .. "\n", { append = true })]],
}
server:wait_for_report(script)
local pid = io.open(server.folder .. "/pid"):read "n"
local function signal(name) assert(os.execute(("kill -%s %d"):format(name, pid))) end
signal "STOP"
-- The others that are on the nodes end meanwhile.
flow.sleep(6)
io.open(server.folder .. "/go", "w"):close()
signal "CONT"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t80\n")
local missing = 80
local seen = {}
for n in io.lines(server.folder .. "/done") do
  if not seen[n] then missing = missing - 1 end
  seen[n] = true
end
check.equal(missing, 0)
