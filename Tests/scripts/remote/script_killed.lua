-- When a script is killed, nodes stop what they execute for it, with its cleanups, and are free for others.
-- clock: real: other processes execute the ops, and nodes wait for the script for 30 s
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
local node = server:join "m1"
local marker = "script-killed-" .. server.port
local script = server:start(([[
  local Op = flow.op("LongOp", { needs = { n = "integer" }, thread = "remote", run = function(ctx)
    local function note(text) local f <close> = assert(io.open(%q, "a")) f:write(text, "\n") end
    note "begin"
    ctx:defer(function() note "defer" end)
    local closed <close> = setmetatable({}, { __close = function() note "close" end })
    require "flow".exec({ "sh", "-c", "sleep 3600; :", %q }):await()
  end })
  flow.new("work"):data { ns = { 1, 2, 3, 4, 5, 6 } }:add_grouped(Op, { input = "ns", as = "n", max_concurrent = 6 }):start()
  while not io.open(%q) do flow.sleep(0.01) end
  os.execute "kill -9 $PPID"
]]):format(server.folder .. "/notes", marker, server.folder .. "/go"))
local function programs()
  local found = flow.exec({ "pgrep", "-f", "sleep 3600; : " .. marker }, { check = false }):await().stdout
  return select(2, found:gsub("%d+", ""))
end
while programs() < 2 do flow.sleep(0.01) end
io.open(server.folder .. "/go", "w"):close()
local from = flow.now()
check.equal(script:await().status ~= 0, true)
while programs() > 0 do
  assert(flow.now() - from < 300, "programs are left")
  flow.sleep(0.05)
end
local alone = flow.now() - from
-- The cleanups come after the ends of the programs.
local notes
repeat
  assert(flow.now() - from < 300, "cleanups are missing")
  flow.sleep(0.05)
  notes = { begin = 0, defer = 0, close = 0 }
  for line in io.lines(server.folder .. "/notes") do notes[line] = notes[line] + 1 end
until notes.defer == notes.begin and notes.close == notes.begin
assert(notes.begin >= 2, notes.begin)

-- Those of its items that nobody has begun don't begin any more.
check.equal(server:run [[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 1) end })
  print(flow.new("f"):add(Op):run().state)
]].stdout, "succeeded\n")
check.equal(programs(), 0)
node:signal "TERM"
check.equal(node:wait(), 0)
if arg[1] == "report" then print(("its programs ended %.1f s after the script"):format(alone)) end
