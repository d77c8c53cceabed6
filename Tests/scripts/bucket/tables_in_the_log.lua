-- The log shows a table as it was at the time, with sorted keys, in at most 120 characters.
local flow, check = require "flow", require "check"
local run = flow.new("tables"):add(flow.op("SetOp", function(ctx)
  local t = { 1, "two", 3.0, b = true, a = { x = 1 } }
  ctx:set("t", t)
  t[1] = "changed later"
  ctx:set("empty", {})
  ctx:set("list", { "a", "b", "c" })
  local long = {}
  for i = 1, 1000 do long[i] = i end
  ctx:set("long", long)
  ctx:set("object", setmetatable({}, { __tostring = function() return "as text" end }))
  local cycle = {}
  cycle.self = cycle
  ctx:set("cycle", cycle)
end)):run()
assert(run.ok, run.error)
local summary = run:summary()
check.contains(summary, "add for t: {1, two, 3.0, a = {x = 1}, b = true}\n", "add for empty: {}\n",
  "add for list: {a, b, c}\n", "add for object: as text\n")
local long = summary:match("add for long: ([^\n]*)\n")
check.equal(utf8.len(long), 120)
check.equal(long:sub(1, 10), "{1, 2, 3, ")
check.equal(long:sub(-3), "…")
