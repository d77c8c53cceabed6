-- Ops in workers can be tested, and each test has its own workers.
local flow, testing, check = require "flow", require "flow.testing", require "check"
local SquareOp = flow.op("SquareOp", {
  needs = { n = "integer" }, gives = { square = "integer" }, thread = "worker",
  run = function(ctx)
    local began = flow.now()
    flow.sleep(60)
    assert(flow.now() - began >= 60)
    ctx:set("square", ctx:get "n" ^ 2 // 1 | 0)
  end,
})
local squares = flow.new("squares"):data { list = { 1, 2, 3, 4, 5 } }
  :add_grouped(SquareOp, { input = "list", output = "squares", max_concurrent = 5 })
-- Also while workers of the script itself are busy, and afterwards.
local OutsideOp = flow.op("OutsideOp", { thread = "worker", run = function(ctx) flow.sleep(0.05); ctx:set("done", true) end })
local outside = OutsideOp:start()
for _ = 1, 3 do
  local run = testing.run(squares)
  assert(run.ok, run.error)
  check.same(run.data.squares, { 1, 4, 9, 16, 25 })
  check.equal(run.duration, 60.0)
  run = testing.run(SquareOp, { data = { n = 7 } })
  assert(run.ok and run.data.square == 49, run.error)
  check.equal(run.duration, 60.0)
end
assert(outside:wait() and outside.data.done)
assert(OutsideOp:run().ok)
-- Fakes of them run on the main thread.
local run = testing.run(squares, { replace = { SquareOp = function(ctx) ctx:set("square", -ctx:get "n") end } })
check.same(run.data.squares, { -1, -2, -3, -4, -5 })
-- A test can stop what workers of the script do.
local long = flow.op("LongOp", { thread = "worker", run = function() flow.sleep(3600) end }):start()
assert(testing.run(flow.op("CancelOp", function() long:cancel("enough") end)).ok)
assert(long:wait())
check.equal(long.error.message, "cancelled: enough")
