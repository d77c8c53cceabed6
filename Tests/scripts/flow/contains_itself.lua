-- A flow that contains itself in any way is an error where it is written.
local flow, check = require "flow", require "check"
local options = { input = "items", as = "item" }
local AnOp = flow.op("AnOp", function() end)
local ways = {
  add = function(outer, inner) outer:add(inner) end,
  add_parallel = function(outer, inner) outer:add_parallel(AnOp, inner) end,
  add_finally = function(outer, inner) outer:add_finally(inner) end,
  add_grouped = function(outer, inner) outer:add_grouped(inner, options) end,
}
for name, way in pairs(ways) do
  local itself = flow.new("itself")
  local raised = check.raises(function() way(itself, itself) end, "flow 'itself' would contain itself")
  check.equal(raised.kind, "usage")
  check.contains(raised.message, "contains_itself.lua:", "'" .. name .. "'")
  for inner, inside in pairs(ways) do
    local outer, middle, deep = flow.new("outer"), flow.new("middle"), flow.new("deep")
    inside(deep, outer)
    middle:case("a", "b"):add(deep):combine()
    raised = check.raises(function() way(outer, middle) end, "flow 'outer' would contain itself")
    check.equal(raised.kind, "usage", name .. " and " .. inner)
    assert(outer:run().ok)
  end
end

-- A copy, or the flow with another policy, is another flow.
local base = flow.new("base"):add(AnOp)
base:add(base:copy()):add(base:with { timeout = 5 })
local starts = 0
for _, event in ipairs(base:run():events()) do
  if event.kind == "start" and event.op == "AnOp" then starts = starts + 1 end
end
check.equal(starts, 4)
