-- A process that was stopped for so long that another one has continued its run writes nothing more about it.
-- python: sqlite3
-- clock: real: the scripts are other programs
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[
local GateOp = flow.op("GateOp", function(ctx)
  effect "gate"
  while os.getenv "WAIT" and not flow.fs.exists "go" do flow.sleep(0.01) end
  ctx:set("by", os.getenv "WAIT" or "other")
end)
local LastOp = flow.op("LastOp", function(ctx) effect("last " .. ctx:get "by") end)
flow.new("work"):add(GateOp):add(LastOp):run()
]]
local waits = kept.waits

local program = script:start { "--keep", environment = { WAIT = "first" } }
local function python(code)
  return flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "-c", [[
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=60)
]] .. code, script.folder .. "/.flowlua/store.sqlite" }):await().stdout
end
waits(function() return flow.fs.exists(script.folder .. "/effects") end)
waits(function() return python "print(*database.execute('SELECT count(*) FROM records').fetchone())" == "1\n" end)
flow.exec { "kill", "-STOP", tostring(program.pid) }:await()
-- As if it had been stopped for an hour on a machine that can't be seen from here.
python "database.execute(\"UPDATE runs SET host = x'656c7365', beat = beat - 3600\"); database.commit()"
script:effects()

check.equal(script:run { "--resume" }.status, 0)
script:expect_effects("gate", "last other")
flow.fs.write(script.folder .. "/go", "")
flow.exec { "kill", "-CONT", tostring(program.pid) }:await()
local result = program:await()
check.equal(result.status, 1)
assert(result.stderr:find "run r%w+ was continued by process %d+ on %S+, so this process can't keep anything more",
  result.stderr)
script:expect_effects()

-- The records of the other process are as they were.
local shown = script:run { "--runs" }.stdout
check.contains(shown, " finished ", " 2 finished")
check.equal(script:run({ "--verify" }).stdout, "verified 1 run\n")
