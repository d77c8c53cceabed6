-- An op of a worker that needs more than its `memory` fails alone, with an error that its code can catch.
local flow = require "flow"
local check = require "check"
local host = require "host"
local testing = require "flow.testing"

local function fill(n)
  local held = {}
  for i = 1, n do held[i] = ("x"):rep(1 << 20) end
  return held
end

local FillOp = flow.op("FillOp", {
  thread = "worker", memory = "8M", needs = { n = "integer" }, gives = { count = "integer" },
  run = function(ctx) ctx:set("count", #fill(ctx:get("n"))) end,
})
check.equal(FillOp.memory, 8 << 20)

local function fails(run)
  assert(not run.ok, "it had enough")
  check.contains(run.error.message, "not enough memory")
end

-- Garbage of the executions before counts neither for nor against the next one.
for _ = 1, 3 do
  for _ = 1, 4 do check.equal(FillOp:run({ n = 6 }).data.count, 6) end
  fails(FillOp:run { n = 12 })
end

-- Others continue, also in their workers, and may have more.
local RestOp = flow.op("RestOp", {
  thread = "worker", gives = { count = "integer" },
  run = function(ctx)
    local held = fill(16)
    flow.sleep(5)
    ctx:set("count", #held + #fill(16))
  end,
})
local sibling = RestOp:start()
fails(FillOp:run { n = 12 })
sibling:wait()
assert(sibling.ok, sibling.error)
check.equal(sibling.data.count, 32)

-- Each item of a group has that much.
local run = flow.new("group"):data { ns = { 4, 12, 5, 20, 6 } }
  :add_grouped(FillOp, { input = "ns", output = "counts", allow_failure = true, failures = "bad", max_concurrent = 3 })
  :run()
assert(run.ok, run.error)
check.same({ table.unpack(run.data.counts) }, { 4, 5, 6 })
check.equal(#run.data.bad, 2)
for place, index in ipairs { 2, 4 } do
  check.equal(run.data.bad[place].index, index)
  check.contains(run.data.bad[place].error.message, "not enough memory")
end

-- The code catches it, and continues with less.
local CatchOp = flow.op("CatchOp", {
  thread = "worker", memory = 8 << 20, gives = { problem = "string", count = "integer" },
  run = function(ctx)
    local ok, problem = pcall(fill, 12)
    assert(not ok)
    ctx:set("problem", problem)
    ctx:set("count", #fill(4))
  end,
})
run = CatchOp:run()
assert(run.ok, run.error)
check.equal(run.data.problem, "not enough memory")
check.equal(run.data.count, 4)

-- Memory that Swift holds for it counts.
local OutputOp = flow.op("OutputOp", {
  thread = "worker", memory = "8M",
  run = function() flow.exec({ "head", "-c", "20000000", "/dev/zero" }):await() end,
})
check.contains(OutputOp:run().error.message, "its output exceeds the memory limit")

-- Each attempt has that much, and the end of one leaves nothing.
local RetryOp = flow.op("RetryOp", {
  thread = "worker", memory = "8M", retry = 3, gives = { count = "integer" },
  run = function(ctx) ctx:set("count", #fill(ctx.attempt < 3 and 12 or 6)) end,
})
run = RetryOp:run()
assert(run.ok, run.error)
check.equal(run.data.count, 6)

-- At one place, in a nested flow, and with other values.
local FreeOp = flow.op("FreeOp", {
  thread = "worker", needs = { n = "integer" }, gives = { count = "integer" },
  run = function(ctx) ctx:set("count", #fill(ctx:get("n"))) end,
})
assert(FreeOp.memory == nil)
local inner = flow.new("inner"):add(FreeOp, { memory = "8M" })
local outer = flow.new("outer"):add(inner)
check.equal(outer:run({ n = 6 }).data.count, 6)
fails(outer:run { n = 12 })
check.contains(outer:dot(), "memory: 8M")
local plan = host.script([[
local flow = require "flow"
local FreeOp = flow.op("FreeOp", { thread = "worker", run = function() end })
flow.new("outer"):add(FreeOp, { memory = 65537, timeout = 2 }):add(FreeOp:with { memory = "1G" }):run()
]], {}, { before = { "--check" } })
check.contains(plan.stdout, "FreeOp (timeout 2s, memory 65537 bytes)", "FreeOp (memory 1G)")
check.equal(FreeOp:run({ n = 12 }).data.count, 12)
check.equal(FillOp:with({ memory = "16M" }):run({ n = 12 }).data.count, 12)
check.equal(FillOp:with({ timeout = 60 }).memory, 8 << 20)
fails(FillOp:with({ name = "OtherOp" }):run { n = 12 })
local MainOp = flow.op("MainOp", function(ctx, n) fill(n) end)
fails(MainOp:with({ thread = "worker", memory = "8M" })(12):run())

-- In a test.
fails(testing.run(FillOp, { data = { n = 12 } }))
check.equal(testing.run(FillOp, { data = { n = 6 } }).data.count, 6)
