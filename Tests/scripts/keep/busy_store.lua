-- A store that another process keeps busy makes a wait for a message neither fail nor block others: the next look takes it.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
local AskOp = flow.op("AskOp", function(ctx)
  effect(ctx:wait_for "n")
  effect(ctx:wait_for "n")
end)
local TickOp = flow.op("TickOp", function()
  while not flow.fs.exists "stop" do
    flow.sleep(0.01)
    if flow.fs.exists "tick" then flow.fs.remove "tick" end
  end
end)
flow.new("both"):add_parallel(AskOp, TickOp):run():await()
]]
local function send(...)
  return flow.exec({ kept.binary(host.binary), "--send", ... }, { cwd = script.folder, check = false }):await().status
end
local path = script.folder .. "/.flowlua/store.sqlite"
-- Changes the store, so that the process looks, and writes on until its input ends.
local busy = [[
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
store.execute("UPDATE runs SET beat = beat")
store.execute("BEGIN IMMEDIATE")
print("busy", flush=True)
sys.stdin.read()
store.execute("COMMIT")
]]

local waiting = script:start { "--keep", "--stay" }
local id
kept.waits(function()
  local runs = flow.exec({ kept.binary(host.binary), "--runs" }, { cwd = script.folder, check = false }):await()
  id = runs.stdout:match "(r%w+) waits for <n>"
  return id
end)
for i = 1, 2 do
  local program = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON" or "python3", "-c", busy, path }, { stdin = "pipe" })
  check.equal((program:lines()()), "busy")
  -- Several looks find it so. Others aren't blocked meanwhile.
  for _ = 1, 40 do
    flow.fs.write(script.folder .. "/tick", "")
    kept.waits(function() return not flow.fs.exists(script.folder .. "/tick") end)
    flow.sleep(0.02)
  end
  program:close_stdin()
  program:await()
  check.equal(send(id, "n=" .. i), 0)
end
flow.fs.write(script.folder .. "/stop", "")
local result = waiting:await()
check.equal(result.status, 0, result.stderr)
script:expect_effects("1", "2")
