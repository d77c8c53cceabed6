-- A store that can't be used, because of another process, its version, its rights or its removal, stops the run.
-- The reason is reported, and nothing is executed unrecorded.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local text = [[
local FirstOp = flow.op("FirstOp", function(ctx)
  effect "first"
  ctx:set("n", 1)
end)
local GateOp = flow.op("GateOp", function(ctx)
  effect "gate"
  while os.getenv "WAIT" and not flow.fs.exists "go" do flow.sleep(0.01) end
  if os.getenv "FAIL" then ctx:fail "not yet" end
end)
local LastOp = flow.op("LastOp", function() effect "last" end)
flow.new("work"):add(FirstOp):add(GateOp):add(LastOp):run()
]]
local binary = kept.binary(host.binary)

local waits = kept.waits
local function runs(script)
  return flow.exec { binary, "--runs", script.path }:await().stdout
end
-- Starts a script, and returns when it waits for `go`, and the store has that.
local function started(script, ...)
  local program = script:start { environment = { WAIT = "1" }, ... }
  waits(function() return flow.fs.exists(script.folder .. "/effects") end)
  waits(function() return runs(script):find "1 finished, 1 started" end)
  script:effects()
  return program
end
local function signal(program, name) flow.exec { "kill", "-" .. name, tostring(program.pid) }:await() end

-- Several continue a run at once: one of them executes it, the others are refused.
local script = kept.script(text)
script:run { "--keep", environment = { FAIL = "1" } }
script:effects()
local programs, done = {}, {}
for i = 1, 4 do programs[i] = script:start { "--resume", environment = { WAIT = "1" } } end
for i, program in ipairs(programs) do
  flow.spawn(function()
    local result = program:await()
    done[#done + 1] = { result = result, index = i }
  end)
end
waits(function() return #done == 3 end)
flow.fs.write(script.folder .. "/go", "")
waits(function() return #done == 4 end)
local winner = programs[done[4].index]
for i = 1, 3 do
  check.equal(done[i].result.status, 1)
  check.contains(done[i].result.stderr, "is being executed by process " .. winner.pid .. "\n")
end
check.match(done[4].result.stderr, "^%S+: r%w+: 1 kept, 1 new, 1 again: had failed\n$")
check.equal(done[4].result.status, 0)
script:expect_effects("gate", "last")

-- A stopped process still has its run.
script = kept.script(text)
local program = started(script, "--keep")
signal(program, "STOP")
local result = script:run { "--resume" }
check.equal(result.status, 1)
check.contains(result.stderr, "is being executed by process " .. program.pid)
check.contains(runs(script), "executing (pid " .. program.pid .. ")")
script:expect_effects()
flow.fs.write(script.folder .. "/go", "")
signal(program, "CONT")
check.equal(program:await().status, 0)
script:expect_effects "last"

-- A store that is removed while it is used isn't made again by what still executes, nor is another one used.
for _, remake in ipairs { false, true } do
  script = kept.script(text)
  program = started(script, "--keep")
  flow.fs.remove(script.folder .. "/.flowlua", { recursive = true })
  if remake then
    check.equal(script:run { "--keep" }.status, 0)
    script:effects()
  end
  flow.fs.write(script.folder .. "/go", "")
  result = program:await()
  check.equal(result.status, 1)
  check.contains(result.stderr, "the store '" .. script.folder .. "/.flowlua' was removed while it was in use")
  script:expect_effects()
  if remake then
    check.equal(select(2, runs(script):gsub("\nr", "")), 1)
  else
    check.equal(flow.fs.exists(script.folder .. "/.flowlua"), false)
    check.equal(script:run { "--resume" }.status, 0)
    script:expect_effects("first", "gate", "last")
  end
end

-- A later version has made it: SQLite has the version in the bytes 61 to 64 of the file.
script = kept.script(text)
check.equal(script:run { "--keep" }.status, 0)
script:effects()
local database = script.folder .. "/.flowlua/store.sqlite"
local bytes = flow.fs.read(database)
flow.fs.write(database, bytes:sub(1, 60) .. string.pack(">I4", 9) .. bytes:sub(65))
for _, option in ipairs { "--keep", "--resume" } do
  result = script:run { option }
  check.equal(result.status, 1)
  check.contains(result.stderr, "/.flowlua' was made by a later version of flowlua (schema 9; this one reads up to 6)")
end
for _, command in ipairs { { "--runs" }, { "--verify" }, { "--show", "r1" }, { "--forget", "--older-than", "1s" } } do
  result = flow.exec({ binary, table.unpack(command) }, { cwd = script.folder, check = false }):await()
  check.equal(result.status, 1)
  check.contains(result.stderr, "was made by a later version of flowlua")
end
check.equal(flow.fs.read(database):sub(61, 64), string.pack(">I4", 9))
script:expect_effects()
flow.fs.write(database, bytes)
check.equal(script:run { "--keep" }.status, 0)
script:effects()

-- Somebody who may not write it can look at it, but doesn't execute anything kept. Root may write everything.
local is_root = flow.exec({ "id", "-u" }):await().stdout == "0\n"
local function limited(words)
  return flow.exec({ "sh", "-c", [[
    limit=
    if [ "$(id -u)" = 0 ]; then limit="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
    # Skipped: somebody without rights can't read the program.
    $limit "$0" -v >/dev/null 2>&1 || { echo skipped; exit 0; }
    exec $limit "$0" "$@"]], binary, table.unpack(words) }, { cwd = script.folder, check = false }):await()
end
for _, mode in ipairs { "a-w,a+rX", "a-rwx" } do
  local list = runs(script)
  flow.exec { "chmod", "a+rX", script.folder, script.path }:await()
  flow.exec { "chmod", "-R", mode, script.folder .. "/.flowlua" }:await()
  local shown, executed = limited { "--runs" }, limited { "--keep", script.path }
  local removed = limited { "--forget", "--older-than", "0s" }
  flow.exec { "chmod", "-R", "u+rwX", script.folder .. "/.flowlua" }:await()
  if shown.stdout == "skipped\n" then
    check.skip "somebody without rights can't read the program"
    break
  end
  if mode == "a-rwx" then
    check.contains(shown.stderr, "can't read the store '.flowlua': Permission denied")
  else
    check.equal(shown.stdout, list)
  end
  for _, refused in ipairs { executed, removed } do
    check.equal(refused.status, 1)
    check.contains(refused.stderr, "the store '", ".flowlua': Permission denied" .. (is_root and " (it belongs to root)" or ""))
  end
  script:expect_effects()
end
