-- A group's input may be an iterator: it is called while items execute, at most max_concurrent + 1 items ahead, and may wait.
local flow, check, scratch = require "flow", require "check", require "scratch"
local log
local Op = flow.op("WorkOp", { needs = { n = "integer" }, gives = { m = "integer" }, run = function(ctx)
  log[#log + 1] = "start " .. ctx:get "n"
  flow.sleep(1)
  log[#log + 1] = "end " .. ctx:get "n"
  ctx:set("m", ctx:get "n" * 10)
end })
local function counter(last, wait)
  local n = 0
  return function()
    if wait then flow.sleep(wait) end
    if n == last then return nil end
    n = n + 1
    log[#log + 1] = "next " .. n
    return n
  end
end
local function run(options, data, op)
  log, options.input = {}, "ns"
  return flow.new("g"):add_grouped(op or Op, options):run(data)
end

local finished = run({ output = "ms", max_concurrent = 2 }, { ns = counter(5) })
check.same({ finished.state, finished.duration }, { "succeeded", 3.0 }, tostring(finished.error))
check.same(finished.data.ms, { 10, 20, 30, 40, 50 })
-- Never more than max_concurrent + 1 ahead of those that have ended.
local function most_ahead()
  local ahead, most = 0, 0
  for _, line in ipairs(log) do
    if line:find "^next" then ahead = ahead + 1 elseif line:find "^end" then ahead = ahead - 1 end
    most = math.max(most, ahead)
  end
  return most
end
check.equal(most_ahead(), 3)
check.contains(finished:summary(), "group created: items of an iterator\n", "all finished. output size: 5\n")

-- Items that don't wait start as they come: none is taken ahead of one that can start.
local Quick = flow.op("QuickOp", { needs = { n = "integer" }, gives = { m = "integer" }, run = function(ctx)
  log[#log + 1] = "end " .. ctx:get "n"
  ctx:set("m", ctx:get "n" * 10)
end })
for _, limit in ipairs { 1, 3, 1000 } do
  finished = run({ output = "ms", max_concurrent = limit }, { ns = counter(200) }, Quick)
  check.same({ #finished.data.ms, finished.data.ms[200], most_ahead() }, { 200, 2000, 1 })
end

-- It may wait: items start as they come, and others execute meanwhile.
finished = run({ output = "ms", max_concurrent = 3 }, { ns = counter(3, 0.5) })
check.same({ finished.duration, finished.data.ms }, { 2.5, { 10, 20, 30 } })
check.same(log, { "next 1", "start 1", "next 2", "start 2", "end 1", "next 3", "start 3", "end 2", "end 3" })
-- Iterators of libraries, callable objects, and false, which is an item.
local dir, folder <close> = scratch.folder()
local path = dir .. "/rows.csv"
flow.fs.write(path, "n,t\n1,a\n2,b\n3,c\n")
local Row = flow.op("RowOp", { needs = { row = "any" }, gives = { text = "string" }, run = function(ctx)
  local row = ctx:get "row"
  ctx:set("text", type(row) == "table" and row.n .. row.t or tostring(row))
end })
local function texts(rows)
  local result = run({ output = "texts" }, { ns = rows }, Row)
  assert(result.ok, result.error)
  return result.data.texts
end
check.equal(folder ~= nil, true)
check.same(texts(flow.csv.rows "n,t\n1,a\n2,b\n3,c\n"), { "1a", "2b", "3c" })
check.same(texts(flow.csv.rows { path = path }), { "1a", "2b", "3c" })
check.same(texts(io.lines(path)), { "n,t", "1,a", "2,b", "3,c" })
local list = { true, false, 3 }
check.same(texts(setmetatable({}, { __call = function() return table.remove(list, 1) end })), { "true", "false", "3" })
-- In graphs, in groups within groups, with labels, a rate, retries and a limit.
local graph = flow.graph("g"):add_grouped(Op, { input = "ns", output = "ms" })
  :add(flow.op("SumOp", { needs = { ms = "integer[]" }, gives = { sum = "integer" }, run = function(ctx)
    local sum = 0
    for _, m in ipairs(ctx:get "ms") do sum = sum + m end
    ctx:set("sum", sum)
  end }))
log = {}
check.equal(graph:run({ ns = counter(4) }).data.sum, 100)
local inner = flow.new("inner"):add(flow.op("MakeOp", { needs = { k = "integer" }, gives = { ns = "function" },
  run = function(ctx) ctx:set("ns", counter(ctx:get "k")) end })):add_grouped(Op, { input = "ns", output = "ms" })
local outer = flow.new("outer"):add_grouped(inner, { input = "ks", as = "k", collect = "ms", output = "all" }):run { ks = counter(2) }
check.same(outer.data.all, { { 10 }, { 10, 20 } })
local labelled = run({ label = function(n) return "item " .. n end, rate = 1, limit = flow.limit("l", 1) }, { ns = counter(2) })
check.contains(labelled:summary(), "[WorkOp #1 item 1] WillStart", "[WorkOp #2 item 2] DidFinish")
check.equal(labelled.duration, 2.0)

-- Failures: of items, with their places; of the iterator, with the number of the item.
local Odd = flow.op("OddOp", { needs = { n = "integer" }, gives = { m = "integer" }, retry = 2, run = function(ctx)
  if ctx:get "n" % 2 == 0 then ctx:fail "even" end
  flow.sleep(1)
  ctx:set("m", ctx:get "n")
end })
local mixed = run({ output = "ms", absent = 0, allow_failure = true, failures = "bad" }, { ns = counter(4) }, Odd)
check.same(mixed.data.ms, { 1, 0, 3, 0 })
check.same({ mixed.data.bad[1].index, mixed.data.bad[1].input, mixed.data.bad[2].input }, { 2, 2, 4 })
local stopped = run({ max_concurrent = 1 }, { ns = counter(math.huge) }, Odd)
check.same({ stopped.state, stopped.error.message }, { "failed", "even" })
check.equal(#log <= 4, true)
local function broken()
  log[#log + 1] = "call"
  if #log == 6 then error("the disk is gone", 0) end
  return #log
end
local failed = run({ allow_failure = true, max_concurrent = 1 }, { ns = broken })
check.equal(failed.state, "failed")
check.match(failed.error.message, "^<ns> failed at item #%d: the disk is gone$")
check.equal(failed.error.op, "Group")
-- The items that it has given before come first.
local function breaks(after)
  local n = 0
  return function()
    n = n + 1
    if n > after then error("the disk is gone", 0) end
    return n
  end
end
failed = run({ max_concurrent = 8 }, { ns = breaks(5) }, Quick)
check.equal(failed.error.message, "<ns> failed at item #6: the disk is gone")
check.same(log, { "end 1", "end 2", "end 3", "end 4", "end 5" })
failed = run({ max_concurrent = 8 }, { ns = breaks(3) })
check.equal(failed.error.message, "<ns> failed at item #4: the disk is gone")
check.same({ log, failed.duration }, { { "start 1", "start 2", "start 3" }, 0.0 })
-- An empty one is an error, unless it may be; a value that gives no items is none.
check.contains(run({}, { ns = function() end }).error.message, "please make sure the input data: <ns> is not empty")
check.same(run({ allow_empty = true, output = "ms" }, { ns = function() end }).data.ms, {})
check.contains(run({}, { ns = 5 }).error.message, "<ns>", "integer")
-- Ends: a cancel and a timeout stop the iterator, too.
local closed = 0
local function waits()
  local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
  flow.sleep(100)
end
log = {}
local waiting = flow.new("g"):add_grouped(Op, { input = "ns" }):start { ns = waits }
waiting:cancel()
waiting:wait()
check.same({ waiting.state, closed }, { "cancelled", 1 })
local late = flow.new("f"):add(flow.new("g"):add_grouped(Op, { input = "ns" }), { timeout = 3 }):run { ns = waits }
check.same({ late.error.kind, late.duration, closed }, { "timeout", 3.0, 2 })
-- An iterator that waits for what never comes is stalled.
local never = flow.context()
local stalled = flow.new("g"):add_grouped(Op, { input = "ns" }):run { ns = function() never.task:await() end }
check.equal(stalled.error.kind, "stalled")
-- In workers and in checks.
local Worker = flow.op("WorkerOp", { needs = { n = "integer" }, gives = { m = "integer" }, thread = "worker",
  run = function(ctx) ctx:set("m", ctx:get "n" + 1) end })
check.same(run({ output = "ms" }, { ns = counter(20) }, Worker).data.ms[20], 21)
check.same(flow.new("g"):data { ns = counter(1) }:add_grouped(Op, { input = "ns" }):check(), {})

-- An item that can't end doesn't stall an iterator that only waits for its turn.
do
  local StuckOp = flow.op("StuckOp", { needs = { x = "integer" }, gives = { y = "integer" }, run = function(ctx)
    if ctx:get "x" == 2 then flow.context().task:await() end
    ctx:set("y", ctx:get "x")
  end })
  local n = 0
  local run = flow.new("f")
    :add_grouped(StuckOp, { input = "xs", output = "ys", max_concurrent = 1, allow_failure = true })
    :run { xs = function() n = n + 1 if n <= 30 then return n end end }
  check.same({ run.state, #run.data.ys }, { "succeeded", 29 }, tostring(run.error))
end
