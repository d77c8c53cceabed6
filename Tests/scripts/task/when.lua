-- Joins wait for all or the first of several tasks.
local flow, check = require "flow", require "check"
local never = flow.context().task

-- when_all_succeed: results in order, or the first failure; it never cancels its inputs.
check.same(flow.when_all_succeed({}):await(), {})
check.same(flow.when_all_succeed({ flow.with_delay(0.002, "a"), flow.resolved("b"), flow.with_delay(0.001, "c") }):await(),
  { "a", "b", "c" })
local slow = flow.with_delay(0.003, "slow")
local failing = flow.with_delay(0.001):next(function() error("first", 0) end)
local all = flow.when_all_succeed { slow, failing, never }
check.equal(all:wait(), true)
check.equal(all.state, "failed")
check.equal(all.error, failing.error)
check.equal(slow.state, "pending")
check.equal(slow:await(), "slow")
check.equal(flow.when_all_succeed({ flow.resolved(1), flow.cancelled("why"), never }).state, "cancelled")
check.equal(flow.when_all_succeed({ flow.failed("x"), flow.cancelled() }).error.message, "x")
local twice = flow.with_delay(0.001, 2)
check.same(flow.when_all_succeed({ twice, twice }):await(), { 2, 2 })

-- when_all_finish: always succeeds.
local outcomes = flow.when_all_finish({
  flow.with_delay(0.001, "a"), flow.failed("bad"), flow.cancelled("gone"), flow.resolved(nil),
}):await()
check.equal(outcomes.n, 4)
check.equal(outcomes[1], "a")
check.equal(outcomes[2], nil)
check.equal(outcomes.errors[1], nil)
check.equal(outcomes.errors[2].message, "bad")
check.equal(outcomes.errors[3].kind, "cancelled")
check.equal(outcomes.errors[4], nil)
check.same(flow.when_all_finish({}):await(), { n = 0, errors = {} })

-- when_any_finish: as the first to settle, with its place.
local any = flow.when_any_finish { never, flow.with_delay(0.002, "late"), flow.with_delay(0.001, "early") }
check.equal(any.index, nil)
check.equal(any:await(), "early")
check.equal(any.index, 3)
local failed = flow.when_any_finish { never, flow.failed("x"), flow.resolved(1) }
check.equal(failed.index, 2)
check.equal(failed.error.message, "x")
check.equal(flow.when_any_finish({ flow.cancelled() }).state, "cancelled")

-- Cancelling one doesn't cancel its inputs either.
local input = flow.with_delay(0.002, "still")
local joined = flow.when_all_succeed { input, never }
joined:cancel()
check.equal(joined.state, "cancelled")
check.equal(input:await(), "still")

-- Runs and programs are inputs as well.
local SetOp = flow.op("SetOp", function(ctx) flow.sleep(0.001) ctx:set("x", 1) end)
local results = flow.when_all_succeed({ SetOp:start(), flow.exec { "true" } }):await()
check.equal(results[1].x, 1)
check.equal(results[2].status, 0)

-- A long list.
local many = {}
for i = 1, 20000 do many[i] = flow.resolved(i) end
check.equal(flow.when_all_succeed(many):await()[20000], 20000)

for _, name in ipairs { "when_all_succeed", "when_all_finish", "when_any_finish" } do
  local fn = flow[name]
  check.usage(function() fn() end, name, "#1", "list of tasks expected, got no value")
  check.usage(function() fn(never) end, name, "#1", "list of tasks expected, got task")
  check.usage(function() fn { never, 1 } end, name, "#1", "element 2: task expected, got number")
  check.usage(function() fn { never, nil, never } end, name, "#1", "list of tasks expected")
  check.usage(function() fn { never, x = never } end, name, "#1", "list of tasks expected")
  check.usage(function() fn { flow.context() } end, name, "#1", "element 1: task expected, got context")
end
check.usage(function() flow.when_any_finish {} end, "when_any_finish", "#1", "empty list")
