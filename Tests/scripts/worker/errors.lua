-- Errors from a worker have kind, message, place in the script, traceback, fields and cause.
local flow = require "flow"
local check = require "check"
local function run(body, ...)
  return flow.op("FailOp", { thread = "worker", run = body })(...):run()
end
local failed = run(function() error("boom") end)
check.equal(failed.error.kind, "error")
assert(failed.error.message:find("errors.lua:7: boom", 1, true), failed.error.message)
check.equal(failed.error.op, "FailOp")
assert(failed.error.traceback:find("errors.lua:7", 1, true), failed.error.traceback)
check.equal(failed.error.cause, failed.error.message)

failed = run(function(ctx) ctx:fail("no", { code = 7, list = { 1, { 2 } }, f = print }) end)
check.equal(failed.error.message, "no")
check.equal(failed.error.code, 7)
check.equal(failed.error.list[2][1], 2)
-- A value that can't travel comes as its text.
assert(failed.error.f:find("builtin") or failed.error.f:find("function"), failed.error.f)

failed = run(function() error({ reason = "table" }) end)
check.equal(failed.error.cause.reason, "table")
check.equal(tostring(failed.error), "[FailOp] " .. failed.error.message)
failed = run(function() error(coroutine.create(print)) end)
assert(failed.error.cause:find("thread"), failed.error.cause)
failed = run(function() error(42) end)
check.equal(failed.error.cause, 42)
failed = run(function(ctx)
  local ok, inner = pcall(function() flow.failed("inner"):await() end)
  assert(not ok)
  error(inner, 0)
end)
check.equal(failed.error.message, "inner")

-- In a group each item's error, for `failures` too.
local OddOp = flow.op("OddOp", {
  needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker",
  run = function(ctx)
    local n = ctx:get("n")
    if n % 2 == 1 then ctx:fail("odd " .. n, { n = n }) end
    ctx:set("m", n)
  end,
})
local ns = {}
for i = 1, 50 do ns[i] = i end
local group = flow.new("g"):data { ns = ns }
  :add_grouped(OddOp, { input = "ns", output = "out", allow_failure = true, failures = "bad" }):run()
assert(group.ok)
check.equal(#group.data.out, 25)
check.equal(#group.data.bad, 25)
for i, bad in ipairs(group.data.bad) do
  check.equal(bad.index, 2 * i - 1)
  check.equal(bad.input, 2 * i - 1)
  check.equal(bad.error.n, 2 * i - 1)
end
-- Without allow_failure the first one ends the group.
group = flow.new("g"):data { ns = ns }:add_grouped(OddOp, { input = "ns", output = "out" }):run()
assert(not group.ok and group.error.message:find("^odd"), group.error.message)
local text = group:summary()
assert(text:find("DidFinish: withError: odd %d+\n[^\n]*not allow failure in group"), text)
