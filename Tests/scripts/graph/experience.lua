-- In a kept script ready ops with the longest way to the end start first, by the durations of the last run that has finished.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

-- One op at a time. LongOp has the longest way to the end, then the group; OtherOp's flow has the shortest one.
local script = kept.script [[
local function op(name, needs, gives, seconds)
  return flow.op(name, { needs = needs, gives = gives, run = function(ctx)
    effect(name)
    flow.sleep(seconds)
    for key in pairs(gives or {}) do ctx:set(key, 1) end
  end })
end
local graph = flow.graph("g", { max_concurrent = 1 }):data { list = { 1, 2, 3 } }
  :add(flow.new("flow"):add(op("OtherOp", {}, {}, 1)))
  :add(op("ShortOp", {}, { short = "integer" }, 2))
  :add(op("AfterOp", { short = "integer" }, {}, 1))
  :add_grouped(op("ItemOp", { i = "integer" }, {}, 2), { input = "list", max_concurrent = 1 })
  :add(op("LongOp", {}, { long = "integer" }, 1))
  :add(op("LastOp", { long = "integer" }, {}, 9))
graph:run()
if os.getenv "FAIL" then error "no" end
]]
local function order(words)
  local result = script:run { "--virtual-clock", words, environment = { FAIL = words == "--resume" and 1 or nil } }
  check.equal(result.status, words == "--resume" and 1 or 0, result.stderr)
  return table.concat(script:effects(), " ")
end

-- Ops that are ready come before the next items of a group.
local added = "OtherOp ShortOp AfterOp ItemOp LongOp LastOp ItemOp ItemOp"
local longest = "LongOp LastOp ItemOp ShortOp OtherOp AfterOp ItemOp ItemOp"
-- Nothing is known at first, and a run that fails or isn't kept leaves nothing to know.
check.equal(order "--resume", added)
check.equal(order "--workers=1", added)
check.equal(order "--keep", added)
check.equal(order "--keep", longest)
-- The last run counts.
check.equal(order "--keep", longest)
check.equal(order "--workers=1", added)
script:edit("9))", "0))")
check.equal(order "--keep", longest)
check.equal(order "--keep", "ItemOp ShortOp OtherOp AfterOp LongOp LastOp ItemOp ItemOp")
