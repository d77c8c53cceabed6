-- A server that is killed forgets which items have ended, and hands them out again: only those execute again that were in flight.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
for k = 1, 3 do server:join("m" .. k) end
local script = server:start_doubling {
  items = 300, at_once = 6, reports = { 60, 120, 180 },
  act = [[
      flow.fs.write(folder .. "/notes", n .. "\n", { append = true })
      flow.sleep(0.02)]],
}
for _ = 1, 3 do
  server:wait_for_report(script)
  server:kill()
  server:restart()
end
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t300\n")
local count = 0
for _ in io.lines(server.folder .. "/notes") do count = count + 1 end
check.equal(count >= 300 and count <= 300 + 3 * 6, true, count .. " executions of 300 items")
