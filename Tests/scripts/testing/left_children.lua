-- Programs that a test file leaves end with its process, daemons too, and a process that it forks writes no results.
-- clock: real: the test files are executed by another program
local check, confined, flow, fs, host = require "check", require "confined", require "flow", require "flow.fs", require "host"

local folder = fs.temp_dir()
local binary = flow.exec({ "realpath", host.binary }):await().stdout:gsub("\n", "")

-- Starts programs without flowlua, which would refuse that in a test; each notes its number, ignores SIGTERM, and holds the
-- output of the tests open. The second one becomes a daemon, whose parent is gone.
local CHILDREN = [[
local function leave()
  local text = "trap '' TERM; echo $$ >>" .. FOLDER .. "/pids; sleep 1000 & wait"
  local uv = require "luv"
  assert(uv.spawn("sh", { args = { "-c", text }, detached = true, stdio = { nil, 1, 2 } }))
  local daemon = ("setsid sh -c %q & wait $(jobs -p)"):format(text):gsub("& wait .*", "&")
  assert(uv.spawn("sh", { args = { "-c", daemon }, stdio = { nil, 1, 2 } }))
  repeat
    local file = io.open(FOLDER .. "/pids")
    local _, count = (file and file:read "a" or ""):gsub("\n", "")
    if file then file:close() end
  until count == 2
end
]]

local function run(text, ...)
  fs.write(folder .. "/a_test.lua", ("local FOLDER = %q\n"):format(folder) .. CHILDREN .. text)
  fs.write(folder .. "/z_test.lua", [[test("last", function() end)]])
  return flow.exec({ binary, "--test", ... }, { cwd = folder, check = false }):await()
end

-- The file passes or fails as if it had left nothing; nothing is there afterwards.
for text, outcome in pairs {
  [ [[test("leaves", leave)]] ] = "ok 1 - a_test.lua: leaves\n",
  [ [[test("ends", function() leave() os.exit(3) end)]] ] = "ended with status 3 before all tests had",
  [ [[test("hangs", function() leave() while true do end end)]] ] = "the time limit of 2s was exceeded",
  [ [[leave() error "early"]] ] = "failed before its tests",
} do
  local result = run(text, "--time-limit", "2", "--grace", "1")
  check.contains(result.stdout, outcome, "z_test.lua: last\n")
  local count = 0
  for pid in fs.read(folder .. "/pids"):gmatch "%d+" do
    count = count + 1
    local stat = io.open("/proc/" .. pid .. "/stat")
    check.equal(stat and stat:read "a", nil, outcome)
  end
  check.equal(count, 2)
  fs.remove(folder .. "/pids")
end

-- A process that is forked executes the rest of the file, too.
if not confined.compile("attack.c", folder .. "/attack.so", "-shared", "-fPIC") then return end
local result = run [[
  local attack = assert(package.loadlib("./attack.so", "luaopen_attack"))()
  test("forks", function() attack.call "fork" end)
  test("is there once", function() end)
]]
check.equal(result.status, 0, result.stdout)
check.contains(result.stdout, "ok 1 - a_test.lua: forks\nok 2 - a_test.lua: is there once\nok 3 - z_test.lua: last\n1..3\n")
