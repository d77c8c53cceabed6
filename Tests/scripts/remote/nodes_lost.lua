-- Jobs of a node that is killed, or stands still, execute on another one after their lease; no item is lost or kept twice.
-- clock: real: other processes execute the ops
local check = require "check"
local flow = require "flow"
local remote = require "remote"

local server <close> = remote.server()
local first, second = server:join "m1", server:join "m2"

local script = server:start_doubling {
  items = 120, at_once = 4, reports = { 10 }, act = "flow.sleep(0.05)",
  last = [[
  local lost = 0
  for _, event in ipairs(run:events()) do
    if event.kind == "log" and event.message:find "is gone" then lost = lost + 1 end
  end
  print(lost > 0 and lost <= 8)]],
}
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
check.equal(result.stdout, "true\nsucceeded\tnil\t120\n")
third:signal "TERM"
check.equal(third:wait(), 0)
