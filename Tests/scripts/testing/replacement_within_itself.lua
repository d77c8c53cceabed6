-- A replacement that contains the replaced op is refused.
local flow = require "flow"
local testing = require "flow.testing"
local check = require "check"

local AOp = flow.op("AOp", function() end)
local BOp = flow.op("BOp", function() end)
local function containing(op) return flow.new("around"):add(op) end
local both = flow.new("both"):add(AOp):add(BOp)

check.raises(function() testing.run(both, { replace = { AOp = containing(AOp) } }) end,
  "replacement_within_itself.lua:11: bad argument #2 to 'run' (field 'replace': what replaces "
    .. "'AOp' contains 'AOp', and would never end)")
check.raises(function()
  testing.run(both, { replace = { AOp = containing(BOp), BOp = containing(containing(AOp)) } })
end, "and would never end")

-- One by way of another is fine, as is an op of the same name.
local ran = {}
local run = testing.run(both, { replace = {
  AOp = containing(BOp), BOp = function() ran[#ran + 1] = "b" end,
} })
check.equal(run.ok, true)
check.equal(#ran, 2)
check.equal(testing.run(both, { replace = { AOp = AOp:with { retry = 2 } } }).ok, true)

-- Steps of machines likewise.
local function machine(run)
  return flow.machine { name = "m", start = "a", flow.step("a", { run = run }) }
end
local m = machine(AOp)
check.raises(function() testing.run(m, { replace = { a = m } }) end, "and would never end")
check.raises(function() testing.run(m, { replace = { AOp = machine(BOp), a = containing(AOp) } }) end,
  "and would never end")
check.equal(testing.run(m, { replace = { a = containing(BOp) } }).ok, true)
