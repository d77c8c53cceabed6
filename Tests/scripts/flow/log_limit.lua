-- The log of a run keeps as many events as its limit says: the oldest lines of ops that succeeded are dropped first.
local flow, check = require "flow", require "check"

local function count(run, kind, op)
  local found = 0
  for _, event in ipairs(run:events()) do
    if event.kind == kind and (not op or event.op == op) then found = found + 1 end
  end
  return found
end

-- Lines of ops that succeeded go, those of a failed one stay, as do all starts and ends.
local LinesOp = flow.op("LinesOp", function(ctx)
  for i = 1, 100 do ctx:log(("line %d, which is longer than a short text"):format(i)) end
end)
local items = {}
for i = 1, 20 do items[i] = i end
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = function(ctx)
  local n = ctx:get "n"
  for i = 1, 50 do ctx:log(("item %d line %d of several"):format(n, i)) end
  if n == 3 then ctx:fail "refused" end
  if n % 2 == 0 then flow.sleep(1) end
end })
run = flow.new("items"):data { list = items }
  :add_grouped(ItemOp, { input = "list", allow_failure = true, max_concurrent = 4 })
  :add(LinesOp):run({}, { log_limit = 400 })
check.equal(run.ok, true)
check.equal(count(run, "start", "ItemOp"), 20)
check.equal(count(run, "finish", "ItemOp"), 20)
local kept = {}
for _, event in ipairs(run:events()) do
  if event.kind == "log" then kept[event.op .. (event.index or "")] = event.message end
end
check.equal(kept.ItemOp3, "item 3 line 50 of several")
check.equal(kept.ItemOp1, nil)
check.equal(kept.LinesOp, "line 100, which is longer than a short text")
local total = #run:events() + run.dropped_events
check.equal(run.dropped_events > 0, true)
check.equal(#run:events() <= 430, true)

-- Nothing is lost without the limit, and nothing of the rest differs.
local whole = flow.new("items"):data { list = items }
  :add_grouped(ItemOp, { input = "list", allow_failure = true, max_concurrent = 4 })
  :add(LinesOp):run()
check.equal(whole.dropped_events, 0)
check.equal(#whole:events(), total)
check.lacks(whole:summary(), "dropped")
check.contains(run:summary(), ("… %d events were dropped: the log keeps 400 …"):format(run.dropped_events))
check.contains(run:report(), ("%d events were dropped: the log keeps 400."):format(run.dropped_events))
check.contains(run:timeline(), ("%d events were dropped: the log keeps 400"):format(run.dropped_events))

-- The order of events and what they are about stay as they were.
local place = 0
local all = whole:events()
local function same(a, b)
  return a.kind == b.kind and a.path == b.path and a.message == b.message and a.time == b.time
end
for _, event in ipairs(run:events()) do
  repeat place = place + 1 until not all[place] or same(event, all[place])
  check.equal(all[place] ~= nil, true)
end

-- An op that logs without end keeps its last lines; the log of a machine is bounded, too.
local endless = flow.op("EndlessOp", function(ctx)
  for i = 1, 10000 do
    ctx:log("line", i)
    ctx:progress(i)
  end
  flow.sleep(1)
  ctx:set("done", true)
end):start({}, { log_limit = 300 })
check.equal(#endless:events() <= 330, true)
check.contains(endless:summary(), "line 10000")
endless:wait()
check.equal(endless.ok, true)
check.equal(count(endless, "start"), 1)
check.equal(count(endless, "finish"), 1)

local count_of_turns = 0
local turns = flow.machine { name = "turns", start = "count the turns", max_transitions = 1e6,
  reduce = function(state)
    count_of_turns = count_of_turns + 1
    return count_of_turns < 5000 and flow.continue { n = count_of_turns } or flow.finish { n = count_of_turns }
  end,
  flow.step("count the turns", { run = function() return 1 end, flow.next(flow.forward "count the turns") }),
}
local turned = turns:run({ n = 0 }, { log_limit = 100 })
check.equal(turned.data.n, 5000)
check.equal(#turned:events() <= 130, true)

-- Runs within an op, and ops that enclose others, are dropped as a whole; a failed one among them is kept.
local outer = flow.op("OuterOp", function()
  for i = 1, 2000 do
    local inner = flow.op("InnerOp", function(ctx) if i == 7 then ctx:fail "refused" end end):run()
    check.equal(inner.ok, i ~= 7)
  end
end)
local long = outer:run({}, { log_limit = 300 })
check.equal(long.ok, true)
check.equal(#long:events() <= 620, true)
local refused = 0
for _, event in ipairs(long:events()) do
  if event.kind == "finish" and event.message:find("refused", 1, true) then refused = refused + 1 end
end
check.equal(refused, 1)

-- An op that a machine executes over and over, one of whose executions fails.
local polls = 0
local PollOp = flow.op("PollOp", { needs = { n = "integer" }, gives = { n = "integer" }, run = function(ctx)
  polls = polls + 1
  ctx:log("poll", polls)
  ctx:set("n", polls)
end })
local polling = flow.machine { name = "polling", start = "poll", max_transitions = 1e6,
  reduce = function(state, event, result)
    return polls < 2000 and flow.continue(state) or flow.finish(state)
  end,
  flow.step("poll", { run = PollOp, flow.next(flow.forward "poll") }),
}
local polled = polling:run({ n = 0 }, { log_limit = 200 })
check.equal(polled.ok, true, polled.error)
check.equal(#polled:events() <= 420, true)

-- The lines of a worker's item stay before its end.
local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { n = "integer" }, run = function(ctx)
  for i = 1, 5 do ctx:log("line", i) end
end })
for _, limit in ipairs { 101, 102, 103, 250 } do
  local numbers = {}
  for i = 1, 300 do numbers[i] = i end
  local worked = flow.new("workers"):data { list = numbers }
    :add_grouped(WorkerOp, { input = "list" }):run({}, { log_limit = limit })
  check.equal(worked.ok, true)
  check.equal(worked.dropped_events > 0, true)
  local ended = {}
  for _, event in ipairs(worked:events()) do
    if event.kind == "finish" then ended[event.path] = true end
    check.equal(event.kind == "log" and ended[event.path] or false, false)
  end
end

-- A graph shows what was dropped as succeeded.
local steps = flow.new("steps"):case(function() return true end):add(LinesOp):otherwise():add(LinesOp):combine()
for _ = 1, 60 do steps:add(flow.op("StepOp", function() end)) end
local stepped = steps:run({}, { log_limit = 20 })
check.equal(stepped.dropped_events > 60, true)
check.contains(stepped:dot(), "succeeded, dropped from the log", [[Cases\ncase 1]])
local _, unreached = stepped:dot():gsub("not reached", "")
check.equal(unreached, 1)

-- An op that is the run itself keeps its start and its end, however many values the run has in the end.
for limit = 1, 20 do
  local alone = flow.op("AloneOp", function(ctx)
    for i = 1, 10 do ctx:set("key" .. i, i) end
    flow.sleep(1)
  end):run({ a = 1, b = 2 }, { log_limit = limit })
  check.equal(count(alone, "start"), 1)
  check.equal(count(alone, "finish"), 1)
end

-- Values that aren't a limit are refused.
local function message(...)
  local ok, problem = pcall(...)
  check.equal(ok, false)
  return tostring(problem)
end
check.contains(message(LinesOp.run, LinesOp, {}, { log_limit = 0 }),
  "run", "field 'log_limit': integer of at least 1 expected, got 0")
check.contains(message(LinesOp.start, LinesOp, {}, { limit = 1 }), "start", "limit")
check.contains(message(turns.start, turns, {}, { log_limit = "many" }), "log_limit", "string")

-- Whole executions go when nothing else is left, but none that failed, was retried or encloses others.
local tried = {}
local ShortOp = flow.op("ShortOp", { needs = { n = "integer" }, retry = 2, run = function(ctx)
  local n = ctx:get "n"
  if n % 100 == 0 then ctx:fail "bad" end
  if n % 100 == 1 and not tried[n] then
    tried[n] = true
    ctx:fail "once"
  end
end })
for i = 1, 2000 do items[i] = i end
local short = flow.new("short"):data { list = items }
  :add_grouped(ShortOp, { input = "list", allow_failure = true })
  :run({}, { log_limit = 500 })
check.equal(short.ok, true)
check.equal(#short:events() <= 530, true)
check.equal(count(short, "retry"), 40)
local failed = 0
for _, event in ipairs(short:events()) do
  if event.kind == "finish" and event.message:find("bad", 1, true) then failed = failed + 1 end
end
check.equal(failed, 20)
check.equal(short:events()[1].kind, "group")
check.contains(short:summary(), "ops that succeeded) were dropped: the log keeps 500")
check.contains(short:report(), "| 2000 | 20 |")

-- Dropped ops are counted at their steps, final ones too, in little memory.
local final = flow.new "final"
for i = 1, 100 do final:add(flow.op(("Step%dOp"):format(i), function() end)) end
for i = 1, 100 do final:add_finally(flow.op(("Final%dOp"):format(i), function() end)) end
local ended = final:run({}, { log_limit = 60 })
check.equal(ended.ok, true)
local drawing = ended:dot()
for _, name in ipairs { "Step1Op", "Step2Op", "Step100Op", "Final1Op", "Final2Op", "Final40Op" } do
  local label = drawing:match('"' .. name .. '[^"]*"') or drawing:match(name .. "[^\n]*") or name .. " isn't drawn"
  check.contains(label, "dropped from the log")
end
local peak
for line in io.lines "/proc/self/status" do peak = tonumber(line:match "^VmHWM:%s*(%d+)") or peak end
check.equal(peak < 2 ^ 20 or peak, true)
