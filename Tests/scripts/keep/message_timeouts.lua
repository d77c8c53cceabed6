-- The time in which an op waits for a message doesn't count for timeouts of ops and flows, and so a kept run ends with 75.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local function command(script, ...)
  return flow.exec({ kept.binary(host.binary), ... }, { cwd = script.folder, check = false }):await()
end

-- Timeouts of the op, of flows and groups around it, and of an op that has started the run, keep no process.
local script = kept.script [[
local AskOp = flow.op("AskOp", { timeout = 300, needs = { item = "integer" }, run = function(ctx)
  effect(ctx:wait_for("x" .. ctx:get "item"))
end })
local inner = flow.new("inner"):data { list = { 1, 2 } }:add_grouped(AskOp, { input = "list" }, { timeout = 200 })
local OuterOp = flow.op("OuterOp", { timeout = 100, run = function() inner:run():await() end })
flow.new("work"):add(OuterOp):with { timeout = 50 }:run():await()
]]
for _, clock in ipairs { "--keep", "--virtual-clock" } do
  local result = script:run(clock == "--keep" and { "--keep" } or { "--keep", clock })
  check.equal(result.status, 75, result.stderr)
  check.contains(result.stderr, "waits for <x1>", "waits for <x2>")
  local id = result.stderr:match "^(r%w+) waits"
  check.equal(command(script, "--send", id, "x1=a", "x2=b", "--resume", script.path).status, 0)
  script:expect_effects("a", "b")
end

-- A question about an effect undoes nothing, however long it lasts.
script = kept.script [[
local TagOp = flow.op("TagOp", { run = function() effect "tag" end, undo = function() effect "untag" end })
local PayOp = flow.op("PayOp", { effect = "once", run = function()
  effect "pay"
  if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
end })
flow.spawn(function() flow.sleep(0.3) effect "later" end)
flow.new("work"):add(TagOp):add(PayOp):with { timeout = 0.2 }:run():await()
]]
check.equal(script:run({ "--keep", environment = { DIE = 1 } }).status, 137)
script:expect_effects("tag", "pay")
check.equal(script:run({ "--resume" }).status, 75)
script:expect_effects "later"
local id = command(script, "--runs").stdout:match "\n(r%w+) waits for <PayOp>"
local waiting = script:start { "--resume", "--stay" }
kept.waits(function() return flow.fs.exists(script.folder .. "/effects") end)
check.equal(command(script, "--send", id, "PayOp=again").status, 0)
local result = waiting:await()
check.equal(result.status, 0, result.stderr)
script:expect_effects("later", "pay")

-- The time after the message counts, also for code that never waits, in a process that stays.
script = kept.script [[
local AskOp = flow.op("AskOp", { needs = { item = "integer" }, run = function(ctx)
  effect "waits"
  ctx:wait_for "x"
  effect "has it"
  while true do end
end })
local run = flow.new("work"):data { list = { 1 } }:add_grouped(AskOp, { input = "list" }):with { timeout = 0.2 }:run()
effect(run.error.kind)
]]
waiting = script:start { "--keep", "--stay" }
kept.waits(function() return flow.fs.exists(script.folder .. "/effects") end)
flow.sleep(0.4)
id = command(script, "--runs").stdout:match "\n(r%w+) waits for <x>"
check.equal(command(script, "--send", id, "x=1").status, 0)
check.equal(waiting:await().status, 0)
script:expect_effects("waits", "has it", "timeout")

-- A session that reads lines from no terminal ends with 75, too.
script = kept.script [[
local AskOp = flow.op("AskOp", { timeout = 50, run = function(ctx) effect(ctx:wait_for "x") end })
function ask() AskOp:run() end
]]
local words = ("printf 'ask()\n' | env -u FLOWLUA_KEEP %s --keep -i script.lua"):format(kept.binary(host.binary))
result = flow.exec({ "sh", "-c", words }, { cwd = script.folder, check = false }):await()
check.equal(result.status, 75, result.stderr)
check.contains(result.stderr, "waits for <x>")
