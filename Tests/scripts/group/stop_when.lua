-- stop_when and ctx:end_group end a group early: no more items start, those that execute end, and the group succeeds.
local flow, check = require "flow", require "check"
local started
local function op(run)
  return flow.op("WorkOp", { needs = { n = "integer" }, gives = { m = "integer" }, run = function(ctx)
    started[#started + 1] = ctx:get "n"
    flow.sleep(ctx:get "n" % 2 == 0 and 2 or 1)
    if run then run(ctx) end
    ctx:set("m", ctx:get "n" * 10)
  end })
end
local ns = {}
for i = 1, 100 do ns[i] = i end
local function run(options, made, input)
  started = {}
  options.input, options.output = "ns", "ms"
  return flow.new("g"):add_grouped(made or op(), options):run { ns = input or ns }
end

-- It gets the results in the order in which they came, and how many items have ended.
local seen = {}
local finished = run({ max_concurrent = 2, stop_when = function(results, n)
  seen[#seen + 1] = { n, results[#results] }
  return n >= 3
end })
check.equal(finished.state, "succeeded", tostring(finished.error))
check.same(seen, { { 1, 10 }, { 2, 20 }, { 3, 30 } })
check.same(started, { 1, 2, 3, 4 })
check.same(finished.data.ms, { 10, 20, 30, 40 })
-- Failed items count, without a result; each execution of the group begins again.
local group = flow.dispatcher { input = "ns", output = "ms", allow_failure = true, max_concurrent = 1,
  stop_when = function(results, n) return n == 4 and #results == 2 end }
for _ = 1, 2 do
  started = {}
  local mixed = flow.new("g"):add_grouped(op(function(ctx) if ctx:get "n" % 2 == 0 then ctx:fail "even" end end), group)
    :run { ns = ns }
  check.same({ mixed.state, #started, mixed.data.ms[2] }, { "succeeded", 4, 30 })
end
check.equal(type(group.stop_when), "function")
-- An endless iterator; places of items that haven't started.
local n = 0
local endless = run({ stop_when = function(_, ended) return ended == 7 end, max_concurrent = 1 }, nil,
  function() n = n + 1 return n end)
check.same({ endless.state, #endless.data.ms, n <= 9 }, { "succeeded", 7, true })
check.same(run({ stop_when = function() return true end, absent = 0, max_concurrent = 1 }, nil, { 1, 2, 3 }).data.ms, { 10, 0, 0 })
-- Its error fails the group.
local failed = run { stop_when = function() error("no budget", 0) end }
check.equal(failed.state, "failed")
check.equal(failed.error.message, "no budget")

-- ctx:end_group, also from within flows and inner ops.
local ending = op(function(ctx) if ctx:get "n" == 3 then ctx:end_group() end end)
for _, made in ipairs { ending, flow.new("inner"):add(ending), flow.wrap(ending, function(_, go) go() end) } do
  local ended = run({ max_concurrent = 2, collect = "m", as = "n" }, made)
  check.same({ ended.state, #ended.data.ms == #started, #started < 5 }, { "succeeded", true, true }, tostring(ended.error))
end
local alone = flow.op("AloneOp", function(ctx) ctx:end_group() end):run()
check.contains(alone.error.message, "bad use of 'end_group' (AloneOp isn't executed by a group)")
local worker = run({}, flow.op("WorkerOp", { needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker",
  run = function(ctx) ctx:end_group() end }))
check.contains(worker.error.message, "ctx:end_group isn't there in a worker", "stop_when")
-- Items in workers end early, too.
local many = run({ max_concurrent = 2, stop_when = function(_, ended) return ended >= 5 end },
  flow.op("WorkerOp", { needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker", run = function(ctx)
    flow.sleep(1)
    ctx:set("m", ctx:get "n")
  end }))
check.same({ many.state, #many.data.ms >= 5, #many.data.ms < 8 }, { "succeeded", true, true }, tostring(many.error))
check.usage(function() flow.dispatcher { input = "ns", stop_when = 5 } end, "dispatcher", "stop_when", "function")
