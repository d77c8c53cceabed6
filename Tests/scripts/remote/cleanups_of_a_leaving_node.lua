-- A node that gives a job back stops it before, with its cleanups: the next execution begins after them.
-- clock: real: other processes execute the ops
local check, remote = require "check", require "remote"

local server <close> = remote.server()
local node = server:join("first", "--grace", "0.2")
local running = server:start(([[
  local Op = flow.op("WorkOp", { thread = "remote", run = function(ctx)
    local flow = require "flow"
    local function note(...) local f <close> = assert(io.open(%q, "a")) f:write(ctx.lane:match "^%%a+", " ", ..., "\n") end
    note "begins"
    if ctx.lane:find "second" then return end
    ctx:defer(function() flow.sleep(0.3) note "deferred" end)
    local closed <close> = setmetatable({}, { __close = function() note "closed" end })
    ctx:log "began"
    flow.sleep(100)
  end })
  local run = flow.new("work"):add(Op):start()
  local function began()
    for _, event in ipairs(run:events()) do if event.kind == "log" then return true end end
  end
  while not began() do flow.sleep(0.001) end
  report()
  run:await()
  print(run.state)
]]):format(server.folder .. "/notes"))
server:wait_for_report(running)
server:join "second"
node:signal "TERM"
local result = running:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\n")
check.equal(node:wait(), 0)
local notes = {}
for line in io.lines(server.folder .. "/notes") do notes[#notes + 1] = line end
check.same(notes, { "first begins", "first closed", "first deferred", "second begins" })
