-- A node that is killed leaves none of the programs that its jobs have started, nor their child processes.
-- clock: real: other processes execute the ops
local flow, remote = require "flow", require "remote"

local server <close> = remote.server()
local node = server:join("m1")
local marker = "killed-programs-" .. server.port
local script = server:start(([[
  local Op = flow.op("LongOp", { thread = "remote", run = function(ctx)
    -- The second sleep is in a group of its own, as a program is in the moment in which it starts.
    require "flow".exec({ "bash", "-c", "set -m; sleep 3600.5 & sleep 3600; :", %q }):await()
  end })
  Op:start()
  flow.sleep(3600)
]]):format(marker))

-- Waits until there are so many processes with this text in their command line. A dead one that nobody has waited for
-- has none.
local function wait_for(count, text)
  local found
  for _ = 1, 1000 do
    found = flow.exec({ "pgrep", "-f", text }, { check = false }):await().stdout
    if select(2, found:gsub("%d+", "")) == count then return found:match "%d+" end
    flow.sleep(0.01)
  end
  error(("%d processes with '%s', not %d"):format(select(2, found:gsub("%d+", "")), text, count), 2)
end
local shell = wait_for(1, "sleep 3600; : " .. marker)
local children
repeat
  children = {}
  local found = flow.exec({ "pgrep", "-P", shell, "-x", "sleep" }, { check = false }):await().stdout
  for child in found:gmatch "%d+" do children[#children + 1] = child end
until #children == 2
node:signal "KILL"
wait_for(0, "sleep 3600; : " .. marker)
for _, child in ipairs(children) do
  local attempts = 0
  while flow.exec({ "ps", "-o", "stat=", "-p", child }, { check = false }):await().stdout:find "^[^Z]" do
    attempts = attempts + 1
    assert(attempts < 1000, "a child process is still there")
    flow.sleep(0.01)
  end
end
script:cancel()
