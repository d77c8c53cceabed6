-- The items of an iterator come once: what would leave some of them out is an error.
local flow, check = require "flow", require "check"

local function numbers(n)
  local i = 0
  return function()
    if i < n then
      i = i + 1
      return i
    end
  end
end
local done = {}
local CopyOp = flow.op("CopyOp", { needs = { n = "integer" }, gives = { copy = "integer" }, run = function(ctx)
  flow.sleep(0.001)
  ctx:set("copy", ctx:get "n")
end })
local OtherOp = CopyOp:with { name = "OtherOp" }

-- Two groups of a graph at the same time.
local graph = flow.graph("two"):add_grouped(CopyOp, { input = "ns", output = "a" })
  :add_grouped(OtherOp, { input = "ns", output = "b" })
local run = graph:run { ns = numbers(8) }
check.equal(run.error.kind, "usage")
check.contains(run.error.message,
  "<ns> is an iterator whose items the group of [CopyOp] takes: each group needs an iterator of its own")
check.equal(graph:run { ns = { 1, 2 } }.ok, true)

-- Another attempt at a flow or graph would begin with the item after the one that failed.
local FailOp = flow.op("FailOp", { needs = { n = "integer" }, run = function(ctx)
  done[#done + 1] = ctx:get "n"
  if #done == 3 then ctx:fail "once" end
end })
for _, new in ipairs { flow.new, flow.graph } do
  done = {}
  run = new("tried"):add_grouped(FailOp, { input = "ns", max_concurrent = 1 }):with { retry = 2 }:run { ns = numbers(5) }
  check.equal(run.error.kind, "usage")
  check.contains(run.error.message,
    "<ns> is an iterator of which an attempt that failed has taken 3 items: set a new one in a step that is tried again, too")
  check.same(done, { 1, 2, 3 })
end

-- With a new iterator for each attempt all are executed.
done = {}
local OpenOp = flow.op("OpenOp", function(ctx) ctx:set("ns", numbers(5)) end)
run = flow.new("opened"):add(OpenOp):add_grouped(FailOp, { input = "ns", max_concurrent = 1 }):with { retry = 2 }:run()
check.equal(run.ok, true)
check.same(done, { 1, 2, 3, 1, 2, 3, 4, 5 })

-- Items that a group has left are for the next one, and one that has ended is only empty.
local left = numbers(5)
run = flow.new("rest")
  :add_grouped(CopyOp, { input = "ns", output = "a", max_concurrent = 1, stop_when = function(_, n) return n == 2 end })
  :add_grouped(OtherOp, { input = "ns", output = "b", max_concurrent = 1 }):run { ns = left }
check.equal(run.ok, true)
check.same(run.data.a, { 1, 2 })
check.equal(run.data.b[#run.data.b], 5)
run = flow.new("empty"):add_grouped(CopyOp, { input = "ns", output = "a" })
  :add_grouped(OtherOp, { input = "ns", output = "b", allow_empty = true }):run { ns = numbers(2) }
check.equal(run.ok, true)
check.same(run.data.b, {})
