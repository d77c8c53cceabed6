-- An op with effect = "once" is never executed twice unless somebody says so, and its start is kept before it begins.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local text = [[
local PayOp = flow.op("PayOp", { needs = { sum = "integer" }, effect = "once", run = function(ctx)
  effect("pay " .. ctx.key)
  ctx:set("receipt", 7)
  if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
end })
local NoteOp = flow.op("NoteOp", function(ctx)
  effect("note " .. tostring(ctx:has "receipt"))
  if os.getenv "STOP" then ctx:fail "stop" end
end)
flow.new("work"):data { sum = 5 }:add(PayOp):add(NoteOp):run()
]]

local function started(environment)
  local script = kept.script(text)
  script:run { "--keep", environment = { [environment] = "1" } }
  return script, script:effects()
end

-- In doubt: it had started.
local script, before = started "DIE"
check.equal(#before, 1)
for _ = 1, 2 do
  local _, result = script:resume()
  check.equal(result.status, 75)
  local id = result.stderr:match "\n(r%w+) waits for"
  check.contains(result.stderr, ("%s waits for <PayOp> ([work/PayOp] had started in run %s, and may have had its effect: "
    .. "done, again or fail?): flowlua --send %s PayOp=done --resume %s\n"):format(id, id, id, script.path))
  script:expect_effects()
end
check.contains(select(2, script:resume { "--settle", "PayOp=fail" }).stderr, "[work/PayOp] is settled as failed")
script:expect_effects()
-- A name that no op has is a mistake, whatever becomes of the run.
for name, status in pairs { Nope = 75, ["PayOp #3"] = 75 } do
  local _, settled = script:resume { "--settle", name .. "=done" }
  check.equal(settled.status, status)
  check.match(settled.stderr, "option '%-%-settle': no op of run r%w+ that was reached is named '" .. name
    .. "'; executed only once: 'PayOp'\n")
  script:expect_effects()
end
script:resume { "--settle", "PayOp=again" }
script:expect_effects(before[1], "note true")
script = kept.script(text)
local mistaken = script:run { "--keep", "--settle", "Nope=done" }
check.equal(mistaken.status, 2)
check.match(mistaken.stderr, "no op of run r%w+ that was reached is named 'Nope'; none has been executed only once\n")
check.equal(#script:effects(), 2)

script = started "DIE"
local log = script:resume { "--settle", "PayOp=done" }
check.contains(log, "[PayOp] Kept from run", "settled as done")
script:expect_effects "note false"

-- It had finished: kept as any other op, but not executed again when something has changed.
script = started "STOP"
script:resume()
script:expect_effects "note true"
script = started "STOP"
script:edit("sum = 5", "sum = 6")
local _, result = script:resume()
check.contains(result.stderr, "[work/PayOp] had finished in run r", ", and <sum> differs")
script:expect_effects()
script:resume { "--settle", "PayOp=done" }
script:expect_effects "note true"

-- A result that can't be kept is an error, after the effect.
script = kept.script [[
flow.new("work"):add(flow.op("PayOp", { effect = "once", run = function(ctx) ctx:set("f", print) end })):run()
]]
result = script:run { "--keep" }
check.contains(result.stderr, "[work/PayOp] is executed only once, but can't be kept: <f>, which it has set, can't be kept")

-- The user's word about it holds in later processes, too.
script = started "DIE"
script:resume { "--settle", "PayOp=done", environment = { STOP = 1 } }
script:expect_effects "note false"
script:resume()
script:expect_effects "note false"

-- Stopped in the middle it may have had its effect; stopped before its start it hasn't.
script = kept.script [[
local PayOp = flow.op("PayOp", { effect = "once", timeout = 0.05, run = function() effect "pay" flow.sleep(60) end })
flow.new("work"):add(PayOp):run()
]]
script:run { "--keep" }
script:expect_effects "pay"
check.contains(select(2, script:resume()).stderr, "[work/PayOp] had started in run r")
script:expect_effects()

-- Items in workers.
script = kept.script [[
local PayOp = flow.op("PayOp", { effect = "once", thread = "worker", needs = { item = "integer" }, run = function()
  local file = io.open("effects", "a")
  file:write "pay\n"
  file:close()
  os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
end })
flow.new("work"):data { list = { 1 } }:add_grouped(PayOp, { input = "list" }):run()
]]
script:run { "--keep" }
script:expect_effects "pay"
check.contains(select(2, script:resume()).stderr, "[work/PayOp #1] had started in run r")
script:expect_effects()

-- Its values aren't known: ops that follow couldn't be executed, so it can't count as done.
script = kept.script((text:gsub("needs = { sum", 'gives = { receipt = "integer" }, needs = { sum')))
script:run { "--keep", environment = { DIE = "1" } }
before = script:effects()
for _, words in ipairs { { "--resume" }, { "--resume", "--settle", "PayOp=done" } } do
  local result = script:run(words)
  check.equal(result.status, 75)
  check.contains(result.stderr,
    "may have had its effect, and <receipt>, which it sets, isn't known: again or fail?", "PayOp=again --resume ")
  script:expect_effects()
end
script:resume { "--settle", "PayOp=again" }
script:expect_effects(before[1], "note true")

-- The question is a pause: what was done before it isn't undone, unless the answer is that the op has failed.
script = kept.script [[
local TagOp = flow.op("TagOp", { run = function() effect "tag" end, undo = function() effect "untag" end })
local PayOp = flow.op("PayOp", { effect = "once", run = function()
  effect "pay"
  if os.getenv "DIE" then os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n") end
end })
local inner = flow.new("inner"):add(TagOp):add(PayOp)
flow.new("work"):add(TagOp):add_grouped(inner, { input = "items", as = "item", allow_failure = true }):data { items = { 1 } }:run()
]]
script:run { "--keep", environment = { DIE = "1" } }
check.same(script:effects(), { "tag", "tag", "pay" })
check.contains(select(2, script:resume()).stderr, " PayOp=done --resume ")
script:expect_effects()
check.contains(select(2, script:resume { "--only", "PayOp" }).stderr, " PayOp=done --resume ")
script:expect_effects()
script:resume { "--settle", "PayOp=fail" }
script:expect_effects "untag"
