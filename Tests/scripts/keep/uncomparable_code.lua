-- An op whose code has too many keys without an order isn't kept: it is executed again, and a warning says why.
-- clock: real: the script is another program
local check, kept = require "check", require "kept"

local script = kept.script [[
local function op(name, count, effects)
  local keys = {}
  for _ = 1, count do keys[function() end] = true end
  return flow.op(name, { effect = effects, run = function(ctx)
    effect(name)
    if next(keys) then ctx:set(name, 1) end
  end })
end
local Many, Few = op("Many", 1001), op("Few", 1000)
flow.new("work"):data { list = { 1, 2 } }:add(Many):add(Few)
  :add_grouped(Many:with { name = "ItemOp" }, { input = "list", as = "n" })
  :add(flow.op("Last", function(ctx) ctx:fail "no" end)):run()
if os.getenv "ONCE" then op("Once", 1001, "once"):run() end
]]
local why = "its code can't be compared: a table of it has 1001 keys that are no numbers, strings or booleans, of at most 1000"
local result = script:run { "--keep" }
check.contains(result.stderr, "[Many] isn't kept, so a resumed run executes it again: " .. why, "[ItemOp] isn't kept")
script:expect_effects("Many", "Few", "Many", "Many")
local log = script:resume()
script:expect_effects("Many", "Many", "Many")
check.contains(log, "[Few] Kept from run")

-- Executed only once, it is an error.
script:write((script.text:gsub("flow.new.*no\" end%)%):run%(%)", "")))
result = script:run { "--keep", environment = { ONCE = 1 } }
check.equal(result.status, 1)
check.contains(result.stderr, "[Once] is executed only once, but can't be kept: " .. why)
