-- A clock that was set back or forward between two processes changes nothing but the age of cached results.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local can = flow.exec({ "faketime", "-v" }, { check = false })
if not pcall(can.await, can) then
  return check.skip "no package faketime"
end

-- Executes a script with its clock moved.
local function run(script, shift, option, value)
  local words = { "env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f", shift, kept.binary(host.binary),
    option or script.path }
  if option then words[#words + 1] = value or script.path end
  return flow.exec(words, { cwd = script.folder, check = false }):await()
end

for _, shifts in ipairs { { "+2d", "-2d" }, { "-2d", "+2d" } } do
  local script = kept.script [[
  local AOp = flow.op("AOp", function(ctx) effect "a" ctx:set("a", 1) end)
  local BOp = flow.op("BOp", function(ctx)
    effect "b"
    if not flow.fs.exists "go" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
    ctx:set("b", ctx:get "a" + 1)
  end)
  local COp = flow.op("COp", function(ctx) print(os.date "%F", ctx:get "b") end)
  flow.new("work"):add(AOp):add(BOp):add(COp):run()
  ]]
  check.equal(run(script, shifts[1], "--keep").stdout, "")
  script:expect_effects("a", "b")
  local list = run(script, shifts[2], "--runs").stdout
  check.contains(list, " unfinished ", " 1 finished")
  check.contains(run(script, shifts[2], "--show", list:match "\n(r%w+)").stdout, "[AOp] finished in ")
  flow.fs.write(script.folder .. "/go", "")
  local result = run(script, shifts[2], "--resume")
  check.match(result.stderr, "^%S+: r%w+: 1 kept, [^\n]+\n$")
  check.contains(result.stdout, "\t2\n")
  script:expect_effects "b"
  check.equal(script:run({ "--verify" }).stdout, "verified 1 run\n")
  -- It has finished, whatever the times say: another one begins.
  check.equal(script:run({ "--resume" }).status, 0)
  script:expect_effects("a", "b")
end

-- Whether a result is too old can't be said when it is from the future.
local script = kept.script [[
flow.keep()
flow.op("AOp", { cache = { expires = 3600 }, run = function() effect "a" end }):run()
]]
check.equal(run(script, "+1d").status, 0)
script:expect_effects "a"
check.equal(run(script, "+1d").status, 0)
script:expect_effects()
check.equal(run(script, "+0d").status, 0)
script:expect_effects "a"
check.equal(run(script, "+0d").status, 0)
script:expect_effects()
