-- `undo` is a field of `flow.op`, of `Op:with` and of the policy of a place, and gets the bound arguments.
local flow, check = require "flow", require "check"

local undone = {}
local function note(what)
  return function(ctx, ...)
    undone[#undone + 1] = table.concat({ what, ctx.name, ... }, " ")
  end
end
local FailOp = flow.op("FailOp", function(ctx) ctx:fail("boom") end)
local CreateOp = flow.op("CreateOp", { run = function() end, undo = note "own" })
local PlainOp = flow.op("PlainOp", function() end)

local function fails(f)
  undone = {}
  check.equal(f:add(FailOp):run().error.message, "boom")
  return undone
end

check.same(fails(flow.new("f"):add(CreateOp "x"):add(CreateOp("y", "z"))),
  { "own CreateOp y z", "own CreateOp x" })
check.same(fails(flow.new("f"):add(PlainOp("p"):with { undo = note "with" })),
  { "with PlainOp p" })
check.same(fails(flow.new("f"):add(PlainOp:with { undo = note "with" } "q")),
  { "with PlainOp q" })
check.same(fails(flow.new("f"):add(CreateOp "x", { undo = note "place" })),
  { "place CreateOp x" })
check.same(fails(flow.new("f"):add(CreateOp "x", { timeout = 5 })), { "own CreateOp x" })
check.same(fails(flow.new("f"):add(flow.ops.PrintOp("hello"):with { undo = note "swift" })),
  { "swift PrintOp" })

-- A wrapper keeps the undo of the op within it.
local wrapped = flow.wrap(CreateOp, function(_, run) run() end)
check.same(fails(flow.new("f"):add(wrapped "w")), { "own CreateOp w" })
check.same(fails(flow.new("f"):add(wrapped:with { undo = note "outer" } "w")),
  { "outer CreateOp", "own CreateOp w" })

-- A wrapper that fails after the op within it undoes that op.
local broken = flow.wrap(CreateOp, function(ctx, run)
  ctx:defer(function() undone[#undone + 1] = "deferred" end)
  run()
  ctx:fail("broken")
end)
undone = {}
check.equal(broken("b"):run().error.message, "broken")
check.same(undone, { "own CreateOp b", "deferred" })

check.raises(function() flow.op("Op", { run = print, undo = 1 }) end, "field 'undo'", "function")
check.raises(function() flow.new("f"):add_finally(PlainOp, { undo = print }) end,
  "field 'undo': a final step is never undone")
