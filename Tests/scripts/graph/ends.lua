-- Conditions, failures, stops and timeouts of graphs: what is skipped says why, and nothing executes that lacks its data.
local flow, check = require "flow", require "check"
local function op(name, needs, gives, run)
  local declared = {}
  for _, key in ipairs(gives) do declared[key] = "integer" end
  local needed = {}
  for _, key in ipairs(needs) do needed[key:match "%w+"] = key:find "?" and "integer?" or "integer" end
  return flow.op(name, { needs = needed, gives = declared, run = run or function(ctx)
    flow.sleep(1)
    for _, key in ipairs(gives) do ctx:set(key, 1) end
  end })
end
local function lines(run)
  local found = {}
  for line in run:summary():gmatch "[^\n]+" do
    local text = line:match "(%[%w+Op%] .*)"
    if text and not text:find "WillStart" then found[#found + 1] = text end
  end
  return table.concat(found, "\n")
end

local A, B, C = op("AOp", {}, { "a" }), op("BOp", { "a" }, { "b" }), op("COp", { "b?" }, { "c" })
local D = op("DOp", {}, {})
local function never(data) flow.sleep(1) return data.yes end
local run = flow.graph("g"):add(A, { when = never }):add(B):add(C):add(D, { after = A }):run()
check.equal(run.state, "succeeded")
check.equal(lines(run), [[
[AOp] Skipped: its condition
[BOp] Skipped: needs <a>, which [AOp] would give
[COp] DidFinish: successfully
[DOp] DidFinish: successfully]])
check.same(flow.graph("g"):add(A, { when = never }):add(B):run { yes = true }.data.b, 1)
run = flow.graph("g"):add(A, { when = function() error("unknown", 0) end }):add(D):run()
check.same({ run.state, run.error.message, run.error.op }, { "failed", "unknown", "AOp" })
check.contains(run:summary(), "[AOp] Skipped: its condition failed: unknown")
-- A value from before a step that is skipped, or fails, stays.
run = flow.new("f"):add(op("BeforeOp", {}, { "a" })):add(flow.graph("g"):add(A, { when = never })):run()
check.equal(run.data.a, 1)
-- A further attempt doesn't see what an earlier one has given.
local attempt, seen = 0, {}
local Once = op("OnceOp", {}, { "o" }, function(ctx) attempt = attempt + 1 ctx:set("o", 1) end)
local See = op("SeeOp", { "o?" }, {}, function(ctx)
  seen[#seen + 1] = tostring(ctx:get("o", "integer?"))
  if attempt == 1 then attempt = 2 error "again" end
end)
run = flow.graph("g"):add(Once, { when = function() return attempt == 0 end }):add(See):with { retry = 2 }:run()
check.same({ run.state, seen }, { "succeeded", { "1", "nil" } })
-- Nor does an op see a value of before under a key that an op of the graph would give, but that was skipped or didn't set it.
seen = {}
local Through = op("ThroughOp", { "o" }, { "p" })
local Maybe = flow.op("MaybeOp", { gives = { q = "integer?" }, run = function() end })
local Look = op("LookOp", { "o?", "p?", "q?" }, {}, function(ctx)
  for _, key in ipairs { "o", "p", "q" } do seen[#seen + 1] = tostring(ctx:get(key, "integer?")) end
end)
run = flow.new("f"):data { o = 7, p = 8, q = 9 }
  :add(flow.graph("g"):add(Once, { when = function() return false end }):add(Through):add(Maybe):add(Look)):run()
check.same({ run.state, seen }, { "succeeded", { "nil", "nil", "nil" } })
-- A group that can't begin fails with its place.
local Item = op("ItemOp", { "i" }, {}, function() end)
for _, list in ipairs { {}, 5 } do
  run = flow.graph("g"):add_grouped(Item, { input = "list" }):run { list = list }
  check.same({ run.state, run.error.path }, { "failed", "g/Group" })
end
check.equal(flow.graph("g"):add_grouped(Item, { input = "list" }):run().error.path, "g/Group")

-- The first failure stops what executes and starts nothing more.
local Fail = op("FailOp", {}, { "f" }, function() flow.sleep(0.5) error("no", 0) end)
local Later = op("LaterOp", { "f" }, {})
run = flow.graph("g"):add(Fail):add(Later):add(A):add(B):run()
check.equal(run.state, "failed")
check.equal(lines(run), [[
[FailOp] DidFinish: withError: no
[AOp] DidFinish: cancelled: group failed]])
-- With keep_going the graph executes all ops that don't need the failed one.
run = flow.graph("g", { keep_going = true }):add(Fail):add(Later):add(op("LastOp", {}, {}), { after = Later })
  :add(A):add(B):run()
check.same({ run.state, run.error.op, run.data.b }, { "failed", "FailOp", 1 })
check.equal(lines(run), [[
[FailOp] DidFinish: withError: no
[LaterOp] Skipped: needs <f>, which [FailOp] would give
[LastOp] Skipped: it comes after [LaterOp], which has failed
[AOp] DidFinish: successfully
[BOp] DidFinish: successfully]])

-- The error has those of the other ops that have failed, in the order of their ends; skipped ops say all that they miss.
local Second = op("SecondOp", {}, { "s" }, function(ctx) flow.sleep(2) ctx:fail("late", { code = 7 }) end)
local Third = op("ThirdOp", {}, {}, function() flow.sleep(3) end)
local both = flow.graph("g", { keep_going = true }):add(op("BothOp", { "f", "s", "a" }, {}))
  :add(Second):add(Third, { when = function() error("unsure", 0) end })
  :add(flow.graph("inner", { keep_going = true }):add(Fail)
    :add(op("Fail2Op", {}, {}, function() flow.sleep(2.5) error("no more", 0) end))):add(A)
run = both:run()
local err = run.error
check.same({ tostring(err), #err.others }, { "[g/ThirdOp] unsure", 3 })
check.same({ err.others[1].code, err.others[2].path, err.others[3].message }, { 7, "g/inner/FailOp", "no more" })
check.contains(run:summary(), "[BothOp] Skipped: needs <s>, which [SecondOp] would give; needs <f>, which [inner] would give")
check.equal(run.error.others[1], err.others[1])
-- A script that raises it again, also through a worker, loses none; its end shows all.
local Raise = flow.op("RaiseOp", { thread = "worker", run = function()
  local flow = require "flow"
  flow.when_any_succeeds({ flow.failed "one", flow.failed "two" }):await()
end })
run = flow.graph("g", { keep_going = true }):add(Raise):add(flow.op("AgainOp", function() error(err) end)):run()
local texts = {}
for _, other in ipairs { run.error, table.unpack(run.error.others) } do texts[#texts + 1] = other.message end
table.sort(texts)
check.equal(table.concat(texts, ", "),
  "late, no, no more, none of 2 tasks has succeeded: one; two, one, two, unsure")
-- Many errors, and a graph whose only error is one of a task.
local many = flow.graph("many", { keep_going = true })
for k = 1, 500 do many:add(op(("M%dOp"):format(k), {}, {}, function() error("m" .. k, 0) end)) end
err = many:run().error
check.same({ err.message, #err.others, err.others[499].message }, { "m1", 499, "m500" })
local None = op("NoneOp", {}, {}, function()
  flow.when_any_succeeds({ flow.failed "first", flow.failed "second" }):await()
end)
err = flow.graph("g", { keep_going = true }):add(None):add(Fail):run().error
check.same({ #err.others, err.others[1].message, err.others[3].message }, { 3, "first", "no" })

-- Stops and timeouts reach what executes.
local cleaned = {}
local Slow = op("SlowOp", {}, {}, function(ctx)
  ctx:defer(function() cleaned[#cleaned + 1] = ctx.name end)
  flow.sleep(100)
end)
local graph = flow.graph("g"):add(Slow):add(A):add(B, { after = Slow })
local started = graph:start()
flow.sleep(0.5)
started:cancel "enough"
started:wait()
check.same({ started.state, started.error.message }, { "cancelled", "cancelled: enough" })
run = graph:with { timeout = 2 }:run()
check.same({ run.state, run.error.kind, run.duration }, { "failed", "timeout", 2.0 })
check.same(cleaned, { "SlowOp", "SlowOp" })
-- A condition that never returns is stopped as well.
run = flow.graph("g"):add(A, { when = function() flow.sleep(100) end }):with { timeout = 2 }:run()
check.same({ run.state, run.error.kind, run.duration }, { "failed", "timeout", 2.0 })
-- An op that waits for what nobody does is stalled.
run = flow.graph("g"):add(op("StuckOp", {}, {}, function() flow.context().task:await() end)):run()
check.equal(run.error.kind, "stalled")
