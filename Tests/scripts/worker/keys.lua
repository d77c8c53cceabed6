-- A worker sees the declared needs and the item, and another key is an error.
local flow = require "flow"
local check = require "check"
local function op(run, needs)
  return flow.op("UploadOp", { needs = needs, thread = "worker", run = run })
end
local message = "key 'x' isn't in the needs of UploadOp: a worker sees only declared needs and the item"
for _, name in ipairs { "get", "has" } do
  local run = op(function(ctx) return ctx[name](ctx, "x") end):run { x = 1 }
  check.equal(run.error.kind, "usage")
  assert(run.error.message:find("keys.lua:%d+: "), run.error.message)
  assert(run.error.message:find(message, 1, true), run.error.message)
end
-- A declared one that may be missing behaves as everywhere.
local run = op(function(ctx)
  assert(ctx:get("x", "integer?") == nil and not ctx:has("x"))
  ctx:set("y", 1)
  assert(ctx:get("y") == 1 and ctx:has("y"))
end, { x = "integer?" }):run {}
assert(run.ok, run.error and run.error.message)
-- In a group the item is there under its key.
local ItemOp = op(function(ctx) ctx:set("double", ctx:get("n") * 2) return ctx:get("x") end)
run = flow.new("g"):data { ns = { 1 }, x = 2 }
  :add_grouped(ItemOp, { input = "ns", output = "out", as = "n", collect = "double" }):run()
assert(run.error.message:find(message, 1, true), run.error.message)
-- Needs and gives are checked as always.
local CheckedOp = op(function() end, { n = "string" })
check.equal(CheckedOp:run { n = 1 }.error.kind, "mismatched_input")
check.equal(CheckedOp:run {}.error.kind, "insufficient_input")
local GivesOp = flow.op("GivesOp", { gives = { a = "string" }, thread = "worker", run = function() end })
check.equal(GivesOp:run().error.kind, "missing_output")
GivesOp = flow.op("GivesOp", {
  gives = { a = "string" }, thread = "worker", run = function(ctx) ctx:set("a", 1) end,
})
check.equal(GivesOp:run().error.kind, "mismatched_output")
-- Types that are functions are decided on the main thread, for items too.
local seen = {}
local TestedOp = flow.op("TestedOp", {
  needs = { n = function(value) seen[#seen + 1] = value return value < 3, "small" end },
  gives = { m = "integer" }, thread = "worker", run = function(ctx) ctx:set("m", ctx:get("n") + 1) end,
})
run = flow.new("g"):data { ns = { 1, 2, 3 } }
  :add_grouped(TestedOp, { input = "ns", output = "out", allow_failure = true, failures = "bad" }):run()
check.equal(table.concat(run.data.out, ","), "2,3")
check.equal(run.data.bad[1].index, 3)
check.equal(#seen, 3)
