-- An op that a node finishes while its kept script is dead isn't executed again, and no report is forgotten before that.
-- python: sqlite3
-- clock: real: other processes execute the ops
local check, flow, kept, remote = require "check", require "flow", require "kept", require "remote"

local server <close> = remote.server()
server:join "m1"

local text = [[
local WorkOp = flow.op("WorkOp", {
  needs = { folder = "string", factor = "integer" }, gives = { result = "integer" }, thread = "remote",
  run = function(ctx)
    local flow = require "flow"
    local folder = ctx:get "folder"
    local file = io.open(folder .. "/effects", "a")
    file:write("work\n")
    file:close()
    ctx:log(("a line that is a report of its own "):rep(3))
    flow.sleep(0.05)
    while not flow.fs.exists(folder .. "/go") do flow.sleep(0.01) end
    ctx:set("result", ctx:get "factor" * 21)
  end,
})
local EndOp = flow.op("EndOp", function(ctx)
  while not flow.fs.exists "end" do flow.sleep(0.01) end
  print("result", ctx:get "result")
end)
flow.new("work"):data { folder = arg[1], factor = tonumber(os.getenv "FACTOR" or "2") }:add(WorkOp):add(EndOp):run()
]]

local function options(script, words, more)
  words.environment = more or {}
  words.environment.FLOWLUA_REMOTE = server.url
  words.arguments = { script.folder }
  return words
end
local function messages(stream) return tonumber(server:request("$JS.API.STREAM.INFO." .. stream):match '"messages":(%d+)') end
local function stored() return messages "FLOWLUA_NEWS" end
local function is_begun(script) return flow.fs.exists(script.folder .. "/effects") end
local function make(name) return function(script) flow.fs.write(script.folder .. "/" .. name, "") end end
local go, finish = make "go", make "end"

-- Starts a script, kills it while a node executes its op, and waits until the server has what that has finished.
local function interrupted(words)
  local script = kept.script(text)
  local program = script:start(options(script, words))
  kept.waits(function() return is_begun(script) end)
  flow.exec { "kill", "-KILL", tostring(program.pid) }:await()
  program:await()
  go(script)
  finish(script)
  -- A node gives its op back once the server has the report with its end.
  kept.waits(function() return messages "FLOWLUA_WORK" == 0 end)
  return script
end

for _, keep in ipairs { "--keep", "--keep=nats" } do
  local script = interrupted { keep }
  local result = script:run(options(script, { keep, "--resume", "--follow" }))
  check.equal(result.status, 0, result.stderr)
  check.equal(result.stdout, "result\t42\n")
  check.contains(result.stderr, "m1/", " has finished it for an earlier process of the script")
  script:expect_effects "work"
end

-- With other inputs it is executed, whatever the node has finished.
local script = interrupted { "--keep" }
local result = script:run(options(script, { "--keep", "--resume" }, { FACTOR = "3" }))
check.equal(result.stdout, "result\t63\n")
script:expect_effects("work", "work")

-- A report is acknowledged only when the disk has its op.
local before = stored()
script = kept.script(text)
local program = script:start(options(script, { "--keep" }))
kept.waits(function() return is_begun(script) end)
local lock = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "-c", [[
import sqlite3, sys, os, time
database = sqlite3.connect(sys.argv[1] + "/.flowlua/store.sqlite", timeout=60, isolation_level=None)
database.execute("BEGIN IMMEDIATE")
open(sys.argv[1] + "/locked", "w").close()
while not os.path.exists(sys.argv[1] + "/release"): time.sleep(0.01)
]], script.folder })
kept.waits(function() return flow.fs.exists(script.folder .. "/locked") end)
go(script)
local function pending()
  return tonumber(server:request "$JS.API.CONSUMER.LIST.FLOWLUA_NEWS":match '"num_ack_pending":([1-9]%d*)') or 0
end
-- The report with the end is on the server; one with the line may be part of it.
kept.waits(function() return messages "FLOWLUA_WORK" == 0 and pending() == stored() - before end)
local reports = stored()
check.equal(reports > before, true)
for _ = 1, 5 do
  check.equal(pending(), reports - before)
  check.equal(stored(), reports)
end
make "release"(script)
lock:await()
kept.waits(function() return stored() == before end)
check.equal(program.state, "pending")
finish(script)
check.equal(program:await().stdout, "result\t42\n")
