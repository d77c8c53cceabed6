-- A run that a server keeps is executed by one process at a time: others are refused, or, once it is silent, replace it.
-- clock: real: the scripts are other programs
local check, flow, kept, remote = require "check", require "flow", require "kept", require "remote"

local server <close> = remote.server()
local text = [[
local GateOp = flow.op("GateOp", function(ctx)
  effect "gate"
  while os.getenv "WAIT" and not flow.fs.exists "go" do flow.sleep(0.01) end
  ctx:set("by", os.getenv "WAIT" or "other")
end)
local LastOp = flow.op("LastOp", function(ctx) effect("last " .. ctx:get "by") end)
flow.new("work"):add(GateOp):add(LastOp):run()
]]
local first, second = kept.script(text), kept.script(text)
local function words(...) return { "--keep=nats", environment = { FLOWLUA_REMOTE = server.url }, ... } end
local function runs(node, ...)
  local options = words(...)
  return node:run(options)
end

local options = words()
options.environment.WAIT = "first"
local program = first:start(options)
kept.waits(function() return flow.fs.exists(first.folder .. "/effects") end)
-- The server has the op that the first one has begun.
kept.waits(function() return runs(second, "--runs").stdout:find("1 started", 1, true) end)

local host = flow.exec { "uname", "-n" }:await().stdout:gsub("\n", "")
local refused = runs(second, "--resume")
check.equal(refused.status, 1)
check.match(refused.stderr, "run r%w+ is being executed by process %d+ on " .. host:gsub("%p", "%%%0") .. "\n")
check.contains(refused.stderr, "process " .. program.pid .. " on ")
second:expect_effects()
local id = refused.stderr:match "run (r%w+)"
check.contains(runs(second, "--forget", id).stderr, "run " .. id .. " is being executed by process " .. program.pid)
check.contains(runs(second, "--runs").stdout, id, "executing")

flow.exec { "kill", "-STOP", tostring(program.pid) }:await()
local result = runs(second, "--resume")
check.equal(result.status, 0, result.stderr)
second:expect_effects("gate", "last other")

flow.fs.write(first.folder .. "/go", "")
flow.exec { "kill", "-CONT", tostring(program.pid) }:await()
result = program:await()
check.equal(result.status, 1)
check.match(result.stderr, "run " .. id .. " was continued by process %d+ on %S+, so this process can't keep anything more")
first:expect_effects "gate"

-- Both nodes find what the second process has recorded.
for _, node in ipairs { first, second } do
  check.contains(runs(node, "--runs").stdout, id, " finished ", " 2 finished")
  check.equal(runs(node, "--verify").stdout, "verified 1 run\n")
end

-- Two nodes that continue at once: one of them does.
local third = kept.script(text)
options = words()
options.environment.WAIT = "third"
program = third:start(options)
kept.waits(function() return flow.fs.exists(third.folder .. "/effects") end)
kept.waits(function() return runs(third, "--runs").stdout:find("1 started", 1, true) end)
flow.exec { "kill", "-KILL", tostring(program.pid) }:await()
program:await()
first:effects()
local both = {}
for k, node in ipairs { first, second } do
  options = words "--resume"
  options.environment.WAIT = "both"
  flow.exec { "rm", "-f", node.folder .. "/go" }:await()
  both[k] = node:start(options)
end
-- Only one of them begins, and the other one ends.
local ended
kept.waits(function()
  for _, task in ipairs(both) do
    if task.state ~= "pending" then ended = task:await() end
  end
  return ended
end)
for _, node in ipairs { first, second } do flow.fs.write(node.folder .. "/go", "") end
local statuses = { both[1]:await().status, both[2]:await().status }
table.sort(statuses)
check.same(statuses, { 0, 1 })
check.match(ended.stderr, "is being executed by process %d+ on ")
