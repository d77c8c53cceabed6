-- Kept runs are listed, shown, removed and checked from the command line, without executing a script.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local script = kept.script [[
effect "executed"
local BuildOp = flow.op("BuildOp", function(ctx)
  ctx:set("image", "shop:17")
  ctx:set("blob", ("x"):rep(100 * 1024))
  ctx:set("old", nil)
end)
local UploadOp = flow.op("UploadOp", { needs = { name = "string" }, retry = 2, run = function(ctx)
  if ctx.index == 2 and ctx.attempt == 1 then ctx:fail "busy" end
  if ctx.index ~= 3 then return end
  if os.getenv "FAIL" then ctx:fail "no\nnetwork" end
  if os.getenv "DIE" then
    flow.sleep(0.05)
    os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
  end
  if os.getenv "WAIT" then
    effect "waiting"
    flow.sleep(600)
  end
end })
flow.new("ship"):data { old = 1, names = { "a", "b/UploadOp.png", "c\27[1m" } }:add(BuildOp)
  :add_grouped(UploadOp, { input = "names", as = "name", max_concurrent = 1, label = function(name) return name end })
  :run()
]]

-- Runs flowlua with words in the script's folder; returns its status, stdout and stderr.
local binary = kept.binary(host.binary)
local function flowlua(...)
  local result = flow.exec({ binary, ... }, { cwd = script.folder, check = false }):await()
  return result.status, result.stdout, result.stderr
end
local function succeeds(...)
  local status, out, err = flowlua(...)
  check.equal(err, "")
  check.equal(status, 0)
  return out
end
local function fails(expected, ...)
  local status, out, err = flowlua(...)
  check.equal(status, expected)
  check.equal(out, "")
  check.equal(select(2, err:gsub("\n", "")), 1)
  return err
end
local function ids()
  local found = {}
  for id in succeeds("--runs"):gmatch "%f[^\n](r%w+) " do found[#found + 1] = id end
  return found
end

-- Without a store nothing is made.
for _, command in ipairs { { "--runs" }, { "--show", "r1" }, { "--forget", "r1" }, { "--verify" },
  { "--forget", "--older-than", "1d" } } do
  check.contains(fails(1, table.unpack(command)), "there is no store '.flowlua'")
end
check.contains(fails(1, "--runs", "--store", "elsewhere"), "there is no store 'elsewhere'")
check.contains(fails(1, "--runs", script.path), "there is no store '" .. script.folder .. "/.flowlua'")
check.equal(flow.fs.exists(script.folder .. "/.flowlua"), false)
check.equal(#script:effects(), 0)

-- One of each state.
check.equal(script:run { "--keep", arguments = { "plain", "two words", "" } }.status, 0)
check.equal(script:run { "--keep", environment = { FAIL = "1" } }.status, 1)
script:run { "--keep", environment = { DIE = "1" } }
script:effects()
local live = script:start { "--keep", environment = { WAIT = "1" } }
while not flow.fs.exists(script.folder .. "/effects")
  or not flow.fs.read(script.folder .. "/effects"):find "waiting" do flow.sleep(0.01) end
script:effects()

local list = ids()
check.equal(#list, 4)
local time = "%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d"
local rows = {}
for line in succeeds("--runs"):gmatch "[^\n]+" do rows[#rows + 1] = line end
check.equal(rows[1]:gsub(" +", " "), "RUN STATE BEGAN CHANGED OPS SCRIPT")
for i, state in ipairs {
  "finished", "failed", "unfinished", "executing %(pid " .. live.pid .. "%)",
} do
  local pattern = "^" .. list[i] .. " +" .. state .. " +" .. time .. "  " .. time .. "  (%d finished.-)  +(.+)$"
  local ops, path = rows[i + 1]:match(pattern)
  check.equal(path, "script.lua")
  check.equal(ops, ({ "4 finished", "3 finished, 1 failed", "3 finished, 1 started", "3 finished, 1 started" })[i])
end
check.equal(succeeds("--runs", script.path), succeeds "--runs")
-- A script that is named has only its own runs listed, also in a store that several scripts share.
flow.fs.copy(script.path, script.folder .. "/other.lua")
check.equal(succeeds("--runs", "other.lua"), "there are no runs of 'other.lua' in the store '" .. script.folder
  .. "/.flowlua'\n4 runs of other scripts: flowlua --runs --store " .. script.folder .. "/.flowlua\n")
check.equal(succeeds("--runs", "--store", script.folder .. "/.flowlua"), succeeds "--runs")

-- A run with its ops.
local function shows(id, ...)
  local text = succeeds("--show", id)
  for _, pattern in ipairs { ... } do assert(text:find(pattern), pattern .. " isn't in\n" .. text) end
  check.lacks(text, "xxx", "\27")
end
local duration = "[%d.]+ [^ ]+"
shows(list[1], "^run " .. list[1] .. ": finished\n  script   script.lua\n  words    plain 'two words' ''\n",
  "  began    " .. time .. "\n  changed  " .. time .. "\n  executed by 1 process\n  ops      4 finished\n\n",
  "%[BuildOp%] finished in " .. duration .. " %(in ship, [^\n]+/script.lua:%d+%)\n"
    .. "  set image %(%d+ bytes%), set blob %(100 KiB%), removed old\n",
  "%[UploadOp #1 a%] finished in ", "%[UploadOp #2 b/UploadOp.png%] finished in [^\n]+ %(in ship, attempt 2, ",
  "%[UploadOp #3 c\\x1B%[1m%] finished")
shows(list[2], "failed\n", "%[UploadOp #3 [^\n]+ failed after " .. duration .. " [^\n]+: no\\nnetwork\n")
shows(list[3], "%[UploadOp #3 [^\n]+ started " .. time .. " %(in ship")
shows(list[4], ": executing %(pid " .. live.pid .. "%)\n")
check.contains(fails(2, "--show", "r0"), "there is no run 'r0' in the store '.flowlua'")
script:run { "--resume=" .. list[3] }
shows(list[3], ": finished\n", "  executed by 2 processes\n")
script:effects()

-- Removing: not one that is being executed.
check.contains(fails(1, "--forget", list[4]), "run " .. list[4] .. " is being executed by process " .. live.pid)
check.contains(fails(2, "--forget", "r0"), "there is no run 'r0'")
check.equal(succeeds("--forget", list[2]), "removed run " .. list[2] .. "\n")
check.equal(succeeds("--forget", "--older-than", "4w"), "no run is older than 4w\n")
check.equal(succeeds "--verify", "verified 3 runs\n")
check.equal(succeeds("--older-than=0s", "--forget"), "removed run " .. list[1] .. "\nremoved run " .. list[3] .. "\n")
check.same(ids(), { list[4] })
live:cancel()
pcall(live.await, live)
check.equal(succeeds("--forget=" .. list[4]), "removed run " .. list[4] .. "\n")
check.equal(succeeds "--runs", "there are no runs in the store '.flowlua'\n")
check.equal(succeeds "--verify", "verified 0 runs\n")
check.equal(#flow.fs.list(script.folder .. "/.flowlua/values"), 0)
check.equal(#script:effects(), 0, "no command executes the script")

-- Something that isn't what was written is named.
for _ = 1, 2 do script:run { "--keep" } end
list = ids()
local values = script.folder .. "/.flowlua/values/" .. list[2]
for _, path in ipairs(flow.fs.list(values)) do flow.fs.write(path, ("y"):rep(100)) end
local status, out = flowlua "--verify"
check.equal(status, 1)
check.contains(out, "run " .. list[2] .. ": ", "isn't what was written\n", "verified 2 runs: 1 problem\n")
check.lacks(out, "run " .. list[1] .. ": ")

-- When a kept script ends, the oldest runs go, but not the one that has ended.
check.equal(script:run({ "--keep", "--store-limit", "1K" }).status, 0)
local left = ids()
check.equal(#left, 1)
check.equal(left[1] ~= list[1] and left[1] ~= list[2], true)
check.equal(script:run({ "--keep", "--store-limit=500M" }).status, 0)
check.equal(#ids(), 2)

-- Wrong use.
for _, case in ipairs {
  { "option '--show' needs a run: --show RUN", "--show" },
  { "option '--runs' takes no value", "--runs=1" }, { "option '--verify' takes no value", "--verify=1" },
  { "option '--forget' needs a run, or an age: --forget --older-than 30d", "--forget" },
  { "option '--forget' needs a run, or an age", "--forget=" },
  { "option '--forget' takes a run or '--older-than', not both", "--forget", "r1", "--older-than", "1d" },
  { "option '--older-than' needs an age: --older-than 30d", "--forget", "--older-than" },
  { "option '--older-than' belongs to '--forget'", "--older-than", "30d" },
  { "option '--older-than' belongs to '--forget', not to '--runs'", "--runs", "--older-than", "30d" },
  { "with the unit s, m, h, d or w, such as 30d, not '30'", "--forget", "--older-than", "30" },
  { "not 'd'", "--forget", "--older-than", "d" }, { "not '1.5d'", "--forget", "--older-than", "1.5d" },
  { "not '99999999999999999w'", "--forget", "--older-than", "99999999999999999w" },
  { "options '--runs' and '--verify' can't be used together", "--runs", "--verify" },
  { "option '--show' is there twice", "--show", "r1", "--show", "r2" },
  { "option '--store-limit' needs a size: --store-limit 500M", "--store-limit" },
  { "with the unit K, M, G or T, such as 500M, not '500'", "--store-limit", "500" },
  { "not '0M'", "--store-limit", "0M" }, { "not '9999999999999T'", "--store-limit=9999999999999T" },
  { "runs are kept only for a script that is a file", "--runs", "-" },
} do
  check.contains(fails(2, table.unpack(case, 2)), case[1])
end
