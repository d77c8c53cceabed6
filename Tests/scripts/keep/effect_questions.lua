-- An op with effect = "once" that is in doubt waits for a message about its effect, which counts once and is never lost.
-- clock: real: the script is another program
local check, flow, host, kept = require "check", require "flow", require "host", require "kept"

local TEXT = [[
local DIE = os.getenv "DIE"
local function die() os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
local TagOp = flow.op("TagOp", { run = function() effect "tag" end, undo = function() effect "untag" end })
local PayOp = flow.op("PayOp", { effect = "once", run = function(ctx)
  effect("pay " .. ctx.key)
  if DIE then die() end
end })
local BesideOp = flow.op("BesideOp", function() if not DIE then effect "beside" end end)
flow.new("work"):add(TagOp):add_parallel(PayOp, BesideOp):run():await()
]]

local function command(script, ...)
  return flow.exec({ kept.binary(host.binary), ... }, { cwd = script.folder, check = false }):await()
end

-- A script whose PayOp was killed in the middle, the id of its run, and the effect.
local function doubt(text)
  local script = kept.script(text or TEXT)
  check.equal(script:run({ "--keep", environment = { DIE = 1 } }).status, 137)
  local id = command(script, "--runs").stdout:match "\n(r%w+)"
  local effects = script:effects()
  return script, id, effects[#effects]
end

-- It pauses: what was done isn't undone, what doesn't need the op is executed, and lists show the question.
local script, id, paid = doubt()
check.equal(script:run({ "--resume" }).status, 75)
script:expect_effects "beside"
check.contains(command(script, "--runs").stdout, id .. " waits for <PayOp> ([work/PayOp] had started in run " .. id
  .. ", and may have had its effect: done, again or fail?): flowlua --send " .. id .. " PayOp=done\n")
local refused = command(script, "--send", id, "PayOp=maybe")
check.equal(refused.status, 2)
check.contains(refused.stderr, 'waits for <PayOp> of type "done"|"again"|"fail", not \'maybe\'')
local result = command(script, "--send", id, "PayOp=done", "--resume", script.path)
check.equal(result.status, 0, result.stderr)
script:expect_effects()
check.contains(command(script, "--runs").stdout, " finished ")

-- Again, before the question was asked; a second such message isn't one to the next question.
script, id, paid = doubt()
check.equal(command(script, "--send", id, "PayOp=again", "PayOp=again").status, 0)
check.equal(script:run({ "--resume", environment = { DIE = 1 } }).status, 137)
script:expect_effects(paid)
check.equal(script:run({ "--resume" }).status, 75)
script:expect_effects "beside"
check.equal(command(script, "--send", id, "PayOp=again", "--resume", script.path).status, 0)
script:expect_effects(paid)

-- Fail: it fails as any op can, and the next process asks again.
script, id, paid = doubt()
result = command(script, "--send", id, "PayOp=fail", "--resume", script.path)
check.equal(result.status, 1)
check.contains(result.stderr, "[work/PayOp] is settled as failed")
check.equal(script:effects()[1], "beside")
check.equal(script:run({ "--resume" }).status, 75)

-- A process that stays takes the answer.
script, id, paid = doubt()
local waiting = script:start { "--resume", "--stay" }
kept.waits(function() return command(script, "--runs").stdout:find(id .. " waits for <PayOp>", 1, true) end)
check.equal(command(script, "--send", id, "PayOp=again").status, 0)
check.equal(waiting:await().status, 0)
script:expect_effects("beside", paid)

-- The message of another op of the script.
script, id, paid = doubt(TEXT:gsub('flow.new%("work"%):add%(TagOp%).*', [[
  local run = flow.new("work"):add(PayOp):start()
  flow.op("SendOp", function() if not DIE then flow.send(run, "PayOp", "again") end end):run()
  run:await()
]]))
check.equal(script:run({ "--resume" }).status, 0)
script:expect_effects(paid)

-- Items are asked about one by one.
script = kept.script [[
local PayOp = flow.op("PayOp", { needs = { n = "integer" }, effect = "once", run = function(ctx)
  effect("pay " .. ctx:get "n")
  if os.getenv "DIE" then
    while #flow.fs.read "effects" < 12 do flow.sleep(0.01) end
    os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
  end
end })
flow.new("work"):data { list = { 1, 2 } }:add_grouped(PayOp, { input = "list" }):run():await()
]]
script:run { "--keep", environment = { DIE = 1 } }
script:expect_effects("pay 1", "pay 2")
result = script:run { "--resume" }
check.equal(result.status, 75)
id = result.stderr:match "\n(r%w+) waits"
check.contains(result.stderr, "waits for <PayOp #1>", "'PayOp #1=done' --resume", "waits for <PayOp #2>")
check.equal(command(script, "--send", id, "PayOp #2=again", "PayOp #1=done", "--resume", script.path).status, 0)
script:expect_effects "pay 2"

-- Ops of one name at several places are asked about by their paths, so that no answer is about another one.
script = kept.script [[
local function pay(place)
  return flow.new(place):add(flow.op("PayOp", { effect = "once", run = function()
    effect(place)
    while os.getenv "DIE" do
      if #flow.fs.read "effects" == 4 then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
      flow.sleep(0.01)
    end
  end }))
end
flow.new("work"):add_parallel(pay "a", pay "b"):run():await()
]]
script:run { "--keep", environment = { DIE = 1 } }
script:expect_effects("a", "b")
result = script:run { "--resume" }
check.equal(result.status, 75)
id = result.stderr:match "\n(r%w+) waits"
check.contains(result.stderr, "waits for <work/a/PayOp>", "waits for <work/b/PayOp>", " work/b/PayOp=done --resume ")
refused = command(script, "--send", id, "PayOp=again", "--resume", script.path)
check.equal(refused.status, 2)
check.contains(refused.stderr, "waits for <work/a/PayOp>, <work/b/PayOp>, not for <PayOp>")
script:expect_effects()
check.equal(command(script, "--send", id, "work/b/PayOp=again", "work/a/PayOp=done", "--resume", script.path).status, 0)
script:expect_effects "b"

-- `done` isn't offered for an item whose value is lost: it is refused, with the name of the op or of the item.
script, id = doubt [[
local PayOp = flow.op("PayOp", { needs = { n = "integer" }, gives = { p = "integer" }, effect = "once", run = function(ctx)
  effect("pay " .. ctx:get "n")
  if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
  ctx:set("p", ctx:get "n")
end })
flow.new("work"):data { list = { 1, 2 } }:add_grouped(PayOp, { input = "list", max_concurrent = 1 }):run():await()
]]
check.equal(script:run({ "--resume" }).status, 75)
for message, why in pairs {
  ["PayOp=done"] = "waits for <PayOp #1>, not for <PayOp>", ["PayOp=again"] = "waits for <PayOp #1>, not for <PayOp>",
  ["PayOp #1=done"] = [[waits for <PayOp #1> of type "again"|"fail", not 'done']],
} do
  refused = command(script, "--send", id, message)
  check.equal(refused.status, 2)
  check.contains(refused.stderr, why)
end
check.equal(command(script, "--send", id, "PayOp #1=again", "--resume", script.path).status, 0)
script:expect_effects("pay 1", "pay 2")
