-- A store whose making was interrupted by a kill is read as none, and made by the next process.
-- clock: real: the script is another program
-- python: sqlite3
local check, flow, kept = require "check", require "flow", require "kept"

local script = kept.script [[flow.new("work"):add(flow.op("WorkOp", function() effect "work" end)):run()]]
script:run { "--keep" }
script:effects()
local store = script.folder .. "/.flowlua"
for _, name in ipairs { "store.sqlite", "store.sqlite-wal", "store.sqlite-shm" } do
  if flow.fs.exists(store .. "/" .. name) then flow.fs.remove(store .. "/" .. name) end
end
-- A transaction on the disk whose process is killed before it ends, such as the one of the first tables.
local program = flow.exec({ os.getenv "FLOWLUA_TEST_PYTHON", "-c", [[
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN IMMEDIATE")
database.execute("CREATE TABLE runs(number)")
for number in range(2000): database.execute("INSERT INTO runs VALUES(zeroblob(1000))")
os.kill(os.getpid(), signal.SIGKILL)
]], store .. "/store.sqlite" }, { check = false }):await()
check.equal(program.signal, 9)
check.equal(flow.fs.exists(store .. "/store.sqlite-journal"), true)

for _, command in ipairs { "--runs", "--verify" } do
  local result = script:run { command }
  check.equal(result.status, 1)
  check.contains(result.stderr, "there is no store '" .. store .. "'")
end
check.equal(script:run({ "--why" }).status, 0)
check.equal(script:run({ "--resume" }).status, 0)
script:expect_effects "work"
check.equal(script:run({ "--verify" }).status, 0)
