-- A run that a server keeps waits for a server that comes back, and fails if none does: nothing continues unrecorded.
-- Lists, removals and names of runs are those of the server.
-- clock: real: the scripts are other programs
local check, flow, kept, remote = require "check", require "flow", require "kept", require "remote"

local server <close> = remote.server()
local text = [[
local GateOp = flow.op("GateOp", function(ctx)
  effect "gate"
  while not flow.fs.exists "go" do flow.sleep(0.01) end
  ctx:set("value", 1)
end)
local LastOp = flow.op("LastOp", function(ctx) effect("last " .. ctx:get "value") end)
flow.new("work"):add(GateOp):add(LastOp):run()
]]
local first, second = kept.script(text), kept.script(text)
local function words(...) return { environment = { FLOWLUA_REMOTE = server.url }, ... } end
local function begin(node, ...)
  local program = node:start(words(...))
  kept.waits(function() return flow.fs.exists(node.folder .. "/effects") end)
  kept.waits(function() return second:run(words("--keep=nats", "--runs")).stdout:find("1 started", 1, true) end)
  return program
end

-- The server is away while an op ends, and comes back.
local program = begin(first, "--keep=nats")
server:kill()
flow.fs.write(first.folder .. "/go", "")
flow.sleep(0.5)
first:expect_effects "gate"
server:restart()
local result = program:await()
check.equal(result.status, 0, result.stderr)
first:expect_effects "last 1"
check.contains(second:run(words("--keep=nats", "--runs")).stdout, " finished ", " 2 finished")

-- It doesn't come back within the time for that.
flow.fs.remove(first.folder .. "/go")
program = begin(first, "--keep=nats", "--remote-timeout", "1")
server:kill()
flow.fs.write(first.folder .. "/go", "")
result = program:await()
check.equal(result.status, 1)
check.match(result.stderr, "can't keep run r%w+ on the server: nats://127.0.0.1:%d+")
first:expect_effects "gate"
-- Nor is there one for a new process.
result = second:run(words("--keep=nats", "--resume"))
check.equal(result.status, 1)
check.contains(result.stderr, "no server listens there")
second:expect_effects()
server:restart()

-- Work that the first node couldn't record is done again; here by the second one.
flow.fs.write(second.folder .. "/go", "")
result = second:run(words("--keep=nats", "--resume", "--follow"))
check.equal(result.status, 0, result.stderr)
check.contains(result.stderr, "[GateOp] Again: it had started, but not finished")
second:expect_effects("gate", "last 1")

-- Runs are those of scripts with the same name: of the file, or a given one.
check.equal(second:run(words("--keep=nats:other", "--resume")).status, 0)
second:expect_effects("gate", "last 1")
local list = second:run(words("--keep=nats", "--runs")).stdout
check.equal(select(2, list:gsub("script.lua\n", "")), 2, list)
check.lacks(list, " other\n")
list = second:run(words("--keep=nats:other", "--runs")).stdout
check.contains(list, "other\n")
local id = list:match "(r%w+)  finished [^\n]* other\n"
check.contains(first:run(words("--keep=nats:other", "--show", id)).stdout, "LastOp")
check.equal(first:run(words("--keep=nats:other", "--forget", id)).stdout, "removed run " .. id .. "\n")
check.contains(second:run(words("--keep=nats:other", "--show", id)).stderr, "there is no run '" .. id .. "'")
check.equal(first:run(words("--keep=nats", "--forget", "--older-than", "1h")).stdout, "no run is older than 1h\n")
local removed = first:run(words("--keep=nats", "--forget", "--older-than", "0s")).stdout
check.equal(select(2, removed:gsub("removed run r%w+\n", "")), 2, removed)
check.contains(second:run(words("--keep=nats", "--runs")).stdout, "there are no runs")

-- Values that say nothing.
for value, message in pairs {
  ["--keep=disk"] = "option '--keep' takes 'nats', or 'nats:' with a name of up to 64 characters, not 'disk'",
  ["--keep=nats:"] = "option '--keep' takes 'nats', or 'nats:' with a name of up to 64 characters, not 'nats:'",
} do
  result = first:run(words(value))
  check.equal(result.status, 2)
  check.contains(result.stderr, message)
end
result = first:run { "--keep=nats" }
check.equal(result.status, 2)
check.contains(result.stderr, "option '--keep=nats' needs a server: --remote nats://HOST, or FLOWLUA_REMOTE")
result = first:run { "--runs", environment = { FLOWLUA_KEEP = "nats" } }
check.lacks(result.stderr, "needs a server")
result = first:run { environment = { FLOWLUA_KEEP = "nats" } }
check.contains(result.stderr, "needs a server")

-- Without the key, or with another one, nobody takes the runs of those who have it for none.
flow.fs.remove(first.folder .. "/go")
local options = words "--keep=nats"
options.environment.FLOWLUA_REMOTE_KEY = "a long random text"
first:effects()
program = first:start(options)
kept.waits(function() return flow.fs.exists(first.folder .. "/effects") end)
flow.exec { "kill", "-KILL", tostring(program.pid) }:await()
program:await()
result = second:run(words("--keep=nats", "--resume"))
check.contains(result.stderr,
  "the server has runs of 'script.lua' that another FLOWLUA_REMOTE_KEY seals, or none: they can't be continued here")

-- A server without room for a message fails the op at once.
local folder <close> = require "servers".folder()
local small <close> = remote.server {
  plain = true, config = ("jetstream { store_dir: %q, max_file_store: 1MB }\n"):format(folder .. "/store"),
}
local filling = kept.script [[
local FillOp = flow.op("FillOp", function(ctx) effect "fill" ctx:set("text", ("x"):rep(400000)) end)
local work = flow.new("work")
for _ = 1, 5 do work:add(FillOp) end
work:run()
]]
result = filling:run { "--keep=nats", environment = { FLOWLUA_REMOTE = small.url } }
check.equal(result.status, 1)
check.contains(result.stderr, "can't keep run r", " on the server: nats://127.0.0.1:", "insufficient")
