-- ctx:execute runs an op inside an op, over the same data and in the same log.
local flow, check = require "flow", require "check"

local DoubleOp = flow.op("DoubleOp", { needs = { n = "integer" }, gives = { twice = "integer" },
  run = function(ctx)
    flow.sleep(1)
    ctx:set("twice", ctx:get "n" * 2)
  end })
local OuterOp = flow.op("OuterOp", function(ctx)
  local given = ctx:execute(DoubleOp, { n = 4 })
  check.same(given, { twice = 8 })
  check.equal(ctx:get "twice", 8)
  -- Without data it has the op's data; any number of times.
  ctx:set("n", 5)
  check.equal(ctx:execute(DoubleOp).twice, 10)
end)
local run = OuterOp:run {}
check.equal(run.ok, true)
check.equal(run.data.twice, 10)
check.equal(run.duration, 2.0)
local _, count = run:summary():gsub("%[DoubleOp%] WillStart", "")
check.equal(count, 2)

-- Flows, wrapped ops and ops with arguments, too.
local AddOp = flow.op("AddOp", function(ctx, n) ctx:set("n", ctx:get "n" + n) end)
run = flow.op("MixedOp", function(ctx)
  ctx:execute(flow.new("both"):add(AddOp(1)):add(AddOp(2)))
  ctx:execute(flow.wrap(AddOp, function(_, inner) inner() end)(3))
end):run { n = 0 }
check.equal(run.data.n, 6)

-- Its failure is raised, and can be caught; its undo belongs to the op around it.
local undone = {}
local FailOp = flow.op("FailOp", function(ctx) ctx:fail "no" end)
local DoneOp = flow.op("DoneOp", { undo = function() undone[#undone + 1] = "done" end, run = function() end })
run = flow.op("CaughtOp", function(ctx)
  local ok, problem = pcall(ctx.execute, ctx, FailOp)
  check.equal(ok, false)
  check.equal(problem.message, "no")
  check.equal(problem.op, "FailOp")
end):run {}
check.equal(run.ok, true)
run = flow.op("UndoneOp", function(ctx)
  ctx:execute(DoneOp)
  ctx:execute(FailOp)
end):start {}
pcall(run.await, run)
check.equal(run.error.message, "no")
check.same(undone, { "done" })

-- It ends with the op around it.
local ended
local LongOp = flow.op("LongOp", function(ctx)
  ctx:defer(function() ended = true end)
  flow.sleep(100)
end)
run = flow.op("ShortOp", { timeout = 1, run = function(ctx) ctx:execute(LongOp) end }):start {}
pcall(run.await, run)
check.equal(run.error.kind, "timeout")
check.equal(ended, true)

local function refused(text, fn)
  local problem
  flow.op("RefusedOp", function(ctx) problem = select(2, pcall(fn, ctx)) end):run {}
  check.contains(tostring(problem), text)
end
refused("bad argument #1 to 'execute' (op expected, got string)", function(ctx) ctx:execute "DoubleOp" end)
refused("bad argument #1 to 'execute' (op expected, got no value)", function(ctx) ctx:execute() end)
refused("bad argument #2 to 'execute' (table expected, got number)", function(ctx) ctx:execute(DoubleOp, 1) end)
refused("can't find <n> in data bucket", function(ctx) ctx:execute(DoubleOp) end)
local late
flow.op("LateOp", function(ctx) late = ctx end):run {}
check.contains(select(2, pcall(late.execute, late, DoubleOp)), "bad use of 'execute' (the op of this ctx has finished)")
