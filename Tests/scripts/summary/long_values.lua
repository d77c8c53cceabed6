-- A summary shortens long values, events and data keep them, and `full` shows whole strings.
local flow, check = require "flow", require "check"
local long = ("ä"):rep(100000)
local SetOp = flow.op("SetOp", function(ctx)
  check.equal(ctx:get "given", long)
  ctx:set("text", "short")
  ctx:set("text", long)
  ctx:set("exact", ("x"):rep(120))
  ctx:log("said: " .. ("y"):rep(200))
end)
local run = SetOp:run { given = long }
assert(run.ok, run.error)
local cut = ("ä"):rep(119) .. "…\n"
local summary = run:summary()
check.contains(summary, "given: " .. cut, "add for text: short\n", "replace for text: short -> " .. cut,
  "add for exact: " .. ("x"):rep(120) .. "\n", "] said: " .. ("y"):rep(200) .. "\n", "\ntext: " .. cut)
check.lacks(summary, ("ä"):rep(120))
check.contains(run:summary { full = true }, "replace for text: short -> " .. long .. "\n", "given: " .. long .. "\n")
check.equal(run.data.text, long)
local seen
for _, event in ipairs(run:events()) do if event.kind == "replace" then seen = event.value end end
check.equal(seen, long)
-- So does the line of a machine's state.
local state = flow.machine { name = "m", start = "a",
  flow.step("a", { run = function() return ("z"):rep(500) end, flow.next(flow.forward "b") }),
  flow.step("b", { run = function() end, final = true }) }:run()
check.contains(state:summary(), "[m] state: " .. ("z"):rep(119) .. "…\n")
check.contains(state:summary { full = true }, "[m] state: " .. ("z"):rep(500) .. "\n")
-- A mismatch shows as much of the value.
local wrong = flow.op("GetOp", function(ctx) ctx:get("given", "integer") end):run { given = long }
check.contains(wrong.error.message, "is <" .. ("ä"):rep(119) .. "…> with type <string>, but NOT")
check.usage(function() run:summary { full = 1 } end, "summary", "field 'full'", "boolean expected")
