-- A failed attempt at a flow is undone before the next one begins; failed attempts at an op aren't.
local flow, check = require "flow", require "check"

local lines, count = {}, 0
local function note(line) lines[#lines + 1] = line end
local CreateOp = flow.op("CreateOp", {
  retry = 2,
  run = function(ctx)
    count = count + 1
    note("create " .. count)
    if count == 1 then ctx:fail("first") end
    ctx:set("made", count)
  end,
  undo = function(ctx) note(("undo %d, attempt %d"):format(ctx:get("made"), ctx.attempt)) end,
})
local FlakyOp = flow.op("FlakyOp", function(ctx) if count < 3 then ctx:fail("flaky") end end)

local run = flow.new("f"):add(CreateOp):add(FlakyOp):with { retry = 2 }:run()
check.equal(run.ok, true)
check.same(lines, { "create 1", "create 2", "undo 2, attempt 2", "create 3" })
