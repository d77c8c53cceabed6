-- Items of a stream pass from one op of a graph to others while all execute, and the slowest reader holds the writer back.
local flow, check = require "flow", require "check"

local read = {}
-- Writes the integers up to n, each after some seconds; gives how many were wanted.
local function writer(n, seconds, options)
  options = options or {}
  options.gives = { rows = "stream<integer>", wanted = "integer" }
  options.run = options.run or function(ctx)
    local written = 0
    for i = 1, n do
      if seconds then flow.sleep(seconds) end
      if not ctx:emit("rows", i) then break end
      written = i
    end
    ctx:set("wanted", written)
  end
  return flow.op("WriteOp", options)
end
-- Reads all, or as many as it wants, each with some seconds of work; gives the sum.
local function reader(name, seconds, most)
  return flow.op(name .. "Op", { needs = { rows = "stream<integer>" }, gives = { [name] = "integer" }, run = function(ctx)
    local sum, count = 0, 0
    for row in ctx:get "rows" do
      sum, count = sum + row, count + 1
      read[name] = count
      if count == most then break end
      if seconds then flow.sleep(seconds) end
    end
    ctx:set(name, sum)
  end })
end

-- Any number of items, in their order; of the stream nothing stays.
for _, n in ipairs { 0, 1, 10, 10000 } do
  local run = flow.graph("g"):add(reader "sum"):add(writer(n)):run()
  check.same({ run.state, run.data.sum, run.data.wanted, run.data.rows }, { "succeeded", n * (n + 1) // 2, n },
    tostring(run.error))
end

-- Readers of three speeds each get every item; the writer is never more than the buffer and one item ahead of the slowest.
for _, buffer in ipairs { 1, 3, 64 } do
  for name in pairs(read) do read[name] = nil end
  local ahead = 0
  local Watched = writer(0, nil, { run = function(ctx)
    for i = 1, 200 do
      ctx:emit("rows", i)
      ahead = math.max(ahead, i - (read.slow or 0))
    end
    ctx:set("wanted", 200)
  end })
  local run = flow.graph("g"):add(Watched, { buffer = buffer }):add(reader "quick"):add(reader("middle", 0.1))
    :add(reader("slow", 1)):run()
  check.same({ run.data.quick, run.data.middle, run.data.slow, run.duration }, { 20100, 20100, 20100, 200.0 })
  check.equal(ahead <= buffer + 1, true, ("%d ahead of %d"):format(ahead, buffer))
  check.equal(ahead >= buffer, true, ("%d ahead of %d"):format(ahead, buffer))
end
-- Both take their time side by side: a reader starts with its writer.
check.equal(flow.graph("g"):add(writer(10, 1)):add(reader("sum", 1)):run().duration, 11.0)

-- The list of all is made where somebody needs it, or the graph gives it.
local Last = flow.op("LastOp", { needs = { rows = "integer[]" }, gives = { last = "integer" },
  run = function(ctx) ctx:set("last", #ctx:get "rows") end })
local run = flow.graph("g"):add(writer(100)):add(Last):run()
check.same({ run.data.last, #run.data.rows }, { 100, 100 })
run = flow.graph("g"):add(writer(5)):add(reader "sum"):gives { rows = "integer[]" }:run()
check.same({ run.data.rows, run.data.sum }, { { 1, 2, 3, 4, 5 }, 15 })
-- Without a reader nothing is wanted.
check.equal(flow.graph("g"):add(writer(5)):run().data.wanted, 0)

-- A list is a stream for who reads one: of the start, of another op, in a flow.
check.equal(flow.graph("g"):add(reader "sum"):run({ rows = { 1, 2, 3 } }).data.sum, 6)
check.equal(flow.new("f"):add(reader "sum"):run({ rows = { 1, 2, 3 } }).data.sum, 6)
local List = flow.op("ListOp", { gives = { rows = "integer[]" }, run = function(ctx) ctx:set("rows", { 4, 5 }) end })
check.equal(flow.graph("g"):add(reader "sum"):add(List):run().data.sum, 9)
-- So is the stream of a graph within the graph, which gives it as a list.
run = flow.graph("g"):add(reader "sum"):add(flow.graph("inner"):gives { rows = "integer[]" }:add(writer(4))):run()
check.same({ run.data.sum, #run.data.rows }, { 10, 4 })
run = flow.graph("g"):add(flow.graph("inner"):add(reader "sum")):add(writer(4)):run()
check.equal(run.data.sum, 10)
-- A reader that can't start before the writer has ended gets the list: nobody waits for room that nobody makes.
local Both = flow.op("BothOp", { needs = { rows = "stream<integer>", last = "integer" }, gives = { n = "integer" },
  run = function(ctx)
    local n = 0
    for _ in ctx:get "rows" do n = n + 1 end
    ctx:set("n", n + ctx:get "last")
  end })
check.equal(flow.graph("g"):add(writer(1000)):add(Last):add(Both):run().data.n, 2000)

-- When all readers have ended, emit returns false.
run = flow.graph("g"):add(writer(1000), { buffer = 2 }):add(reader("few", nil, 3)):add(reader("more", nil, 10)):run()
check.same({ run.state, run.data.few, run.data.more }, { "succeeded", 6, 55 })
check.equal(run.data.wanted >= 10 and run.data.wanted <= 14, true, run.data.wanted)

-- The writer fails: the graph ends, or with keep_going the reader meets the error at its next item.
local Fail = writer(0, nil, { run = function(ctx)
  for i = 1, 3 do ctx:emit("rows", i) end
  flow.sleep(1)
  error("disk full", 0)
end })
run = flow.graph("g"):add(Fail):add(reader("sum", 0.1)):run()
check.same({ run.state, run.error.op, run.error.message }, { "failed", "WriteOp", "disk full" })
local met
local Meet = flow.op("MeetOp", { needs = { rows = "stream<integer>" }, run = function(ctx)
  local rows, n = ctx:get "rows", 0
  met = select(2, pcall(function() for _ in rows do n = n + 1 end end))
  met.count = n
end })
run = flow.graph("g", { keep_going = true }):add(Fail):add(Meet):run()
check.same({ run.state, run.error.op, met.op, met.message, met.count }, { "failed", "WriteOp", "WriteOp", "disk full", 3 })
-- One reader fails: the others get all that follows.
local Broken = flow.op("BrokenOp", { needs = { rows = "stream<integer>" }, run = function(ctx) ctx:get "rows"() error "no" end })
run = flow.graph("g", { keep_going = true }):add(writer(500)):add(Broken):add(reader "sum"):run()
check.same({ run.error.op, run.data.sum, run.data.wanted }, { "BrokenOp", 125250, 500 })

-- Cancelled and timed out, on either side of the stream.
local started = flow.graph("g"):add(writer(1000, 1)):add(reader("sum", 2)):start()
flow.sleep(10)
started:cancel "enough"
started:wait()
check.same({ started.state, started.error.message }, { "cancelled", "cancelled: enough" })
run = flow.graph("g"):add(writer(1000, 1)):add(reader("sum", 1), { timeout = 5 }):run()
check.same({ run.error.kind, run.error.op, run.duration }, { "timeout", "sumOp", 5.0 })
run = flow.graph("g"):add(writer(1000), { timeout = 5 }):add(reader("sum", 1)):run()
check.same({ run.error.kind, run.error.op, run.duration }, { "timeout", "WriteOp", 5.0 })
-- A reader that waits for ever is stalled, and holds nobody back from then on.
local Stuck = flow.op("StuckOp", { needs = { rows = "stream<integer>" }, run = function() flow.context().task:await() end })
run = flow.graph("g", { keep_going = true }):add(writer(1000)):add(Stuck):add(reader "sum"):run()
check.same({ run.error.kind, run.error.message }, { "stalled", "stalled: [StuckOp] never finished" })
check.equal(run.error.others, nil)
check.same({ run.data.sum, run.data.wanted }, { 500500, 1000 })
-- Ops that wait for each other are stalled together, and say for whom they wait.
run = flow.graph("g", { keep_going = true })
  :add(flow.op("TwoOp", { gives = { a = "stream<integer>", b = "stream<integer>" }, run = function(ctx)
    for _, key in ipairs { "a", "b" } do for i = 1, 3 do ctx:emit(key, i) end end
  end }), { buffer = 2 })
  :add(flow.op("TurnedOp", { needs = { a = "stream<integer>", b = "stream<integer>" }, run = function(ctx)
    for _, key in ipairs { "b", "a" } do for _ in ctx:get(key) do flow.sleep(0) end end
  end })):run()
local stalls = {}
for i, problem in ipairs { run.error, table.unpack(run.error.others) } do stalls[i] = problem.message end
table.sort(stalls)
check.same(stalls, {
  "stalled: [TurnedOp] waits for <b>, which [TwoOp] gives",
  "stalled: [TwoOp] waits for [TurnedOp], which has read 0 of 2 items of <a>",
})

-- A reader whose condition is false, and one that is skipped, hold nobody back.
run = flow.graph("g", { keep_going = true }):add(writer(200))
  :add(reader "sum"):add(reader "never", { when = function() return false end })
  :add(flow.op("NoOp", { gives = { no = "integer" }, run = function() flow.sleep(1) error "no" end }))
  :add(flow.op("AfterOp", { needs = { no = "integer", rows = "stream<integer>" }, run = function() end })):run()
check.same({ run.data.sum, run.data.never, run.error.op }, { 20100, nil, "NoOp" })
check.contains(run:summary(), "[AfterOp] Skipped: needs <no>, which [NoOp] would give")

-- A reader that waits for the end of another reader gets the list.
local Copy = flow.op("CopyOp", { needs = { row = "integer" }, gives = { copy = "integer" },
  run = function(ctx) ctx:set("copy", ctx:get "row") end })
local Both = flow.op("BothOp", { needs = { rows = "stream<integer>", copies = "integer[]" }, gives = { sum = "integer" },
  run = function(ctx)
    local sum = 0
    for row in ctx:get "rows" do sum = sum + row end
    ctx:set("sum", sum - #ctx:get "copies")
  end })
run = flow.graph("g"):add(writer(500), { buffer = 1 })
  :add_grouped(Copy, { input = "rows", output = "copies", as = "row" }):add(Both):run()
check.same({ run.state, run.data.sum }, { "succeeded", 124750 }, tostring(run.error))

-- One op at a time: who waits for a stream doesn't execute.
local busy, most = 0, 0
local function work()
  busy = busy + 1
  most = math.max(most, busy)
  flow.sleep(0.5)
  busy = busy - 1
end
run = flow.graph("g", { max_concurrent = 1 })
  :add(writer(0, nil, { run = function(ctx)
    for i = 1, 20 do work() ctx:emit("rows", i) end
    ctx:set("wanted", 20)
  end }), { buffer = 3 })
  :add(flow.op("CountOp", { needs = { rows = "stream<integer>" }, gives = { n = "integer" }, run = function(ctx)
    local n = 0
    for _ in ctx:get "rows" do work() n = n + 1 end
    ctx:set("n", n)
  end })):run()
check.same({ run.state, run.data.n, most, run.duration }, { "succeeded", 20, 1, 20.0 }, tostring(run.error))

-- An op that has passed items isn't tried again: they would pass twice. One that hasn't is.
local attempts = 0
local Again = writer(0, nil, { retry = 3, run = function(ctx)
  attempts = attempts + 1
  if attempts == 1 then error "before the first item" end
  ctx:emit("rows", 1)
  error("after it", 0)
end })
run = flow.graph("g"):add(Again):add(reader "sum"):run()
check.same({ attempts, run.error.message }, { 2, "after it" })
-- A graph as a whole is.
attempts = 0
local Second = writer(0, nil, { run = function(ctx)
  attempts = attempts + 1
  ctx:emit("rows", attempts)
  if attempts == 1 then error "no" end
  ctx:set("wanted", 1)
end })
check.equal(flow.graph("g"):add(Second):add(reader "sum"):with { retry = 2 }:run().data.sum, 2)

-- Other names, decorators and tasks of an op are no obstacle.
local Timed = function(op) return flow.wrap(op, function(_, go) go() end) end
run = flow.graph("g"):add(Timed(writer(5):with { keys = { rows = "lines" } }))
  :add(Timed(reader "sum":with { keys = { rows = "lines" } })):run()
check.same({ run.data.sum, run.data.wanted }, { 15, 5 }, tostring(run.error))
run = flow.graph("g"):add(writer(0, nil, { run = function(ctx)
  local tasks = {}
  for k = 1, 5 do tasks[k] = flow.spawn(function() for i = 1, 20 do ctx:emit("rows", i) flow.sleep(0.1) end end) end
  for _, task in ipairs(tasks) do task:await() end
  ctx:set("wanted", 100)
end }), { buffer = 2 }):add(reader "sum"):run()
check.equal(run.data.sum, 5 * 210, tostring(run.error))

-- Items for which tasks of an op wait when it returns aren't lost.
for _, many in ipairs { 5, 3000 } do
  run = flow.graph("g"):add(writer(0, nil, { run = function(ctx)
    for i = 1, many do flow.spawn(function() ctx:emit("rows", i) end) end
    ctx:set("wanted", many)
  end }), { buffer = 2 }):add(reader("sum", 0.1)):run()
  check.same({ run.state, run.data.sum }, { "succeeded", many * (many + 1) // 2 }, tostring(run.error))
end
-- A task that writes another one later gets an error.
local late
run = flow.graph("g"):add(writer(0, nil, { run = function(ctx)
  flow.spawn(function()
    for i = 1, 5 do
      local ok, problem = pcall(ctx.emit, ctx, "rows", i)
      if not ok then late = { i, problem.message } return end
    end
  end)
  ctx:set("wanted", 2)
end }), { buffer = 2 }):add(reader("sum", 1)):run()
check.same({ run.state, run.data.sum, late[1] }, { "succeeded", 6, 4 }, tostring(run.error))
check.contains(late[2], "bad use of 'emit' (the op of this ctx has finished)")

-- A graph with a limit counts an op once, however many of its tasks write.
for _, most in ipairs { 1, 2 } do
  run = flow.graph("g", { max_concurrent = most }):add(writer(0, nil, { run = function(ctx)
    local first = flow.spawn(function() for i = 1, 2 do ctx:emit("rows", i) end end)
    local second = flow.spawn(function() for i = 3, 9 do ctx:emit("rows", i) end end)
    first:await()
    second:await()
    ctx:set("wanted", 9)
  end }), { buffer = 1 }):add(reader "sum"):run()
  check.same({ run.state, run.data.sum }, { "succeeded", 45 }, tostring(run.error))
end

-- Nothing passes over an item that has failed, unless failures are allowed.
local passed = {}
local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, gives = { m = "integer" }, run = function(ctx)
  local n = ctx:get "n"
  flow.sleep(n == 3 and 2 or n == 5 and 10 or 1)
  if n == 3 then error("no 3", 0) end
  ctx:set("m", n)
end })
local PassedOp = flow.op("PassedOp", { needs = { ms = "stream<integer>" }, run = function(ctx)
  for m in ctx:get "ms" do passed[#passed + 1] = m end
end })
run = flow.graph("g", { keep_going = true })
  :add_grouped(ItemOp, { input = "ns", output = "ms", max_concurrent = 5 }):add(PassedOp)
  :run { ns = { 1, 2, 3, 4, 5 } }
check.same({ run.state, table.concat(passed, " ") }, { "failed", "1 2" })

-- An iterator that waits for room isn't stalled, nor is its group: only the op that can't continue.
local StuckOp = flow.op("StuckOp", { needs = { ms = "stream<integer>" }, run = function(ctx)
  ctx:get "ms"()
  flow.context().task:await()
end })
local given = 0
run = flow.graph("g", { keep_going = true })
  :add_grouped(flow.op("SameOp", { needs = { n = "integer" }, gives = { m = "integer" },
    run = function(ctx) ctx:set("m", ctx:get "n") end }), { input = "ns", output = "ms", max_concurrent = 2 })
  :add(StuckOp):run { ns = function() given = given + 1 if given <= 300 then return given end end }
check.contains(run.error.message, "StuckOp")
check.same({ given, #(run.error.others or {}) }, { 301, 0 }, tostring(run.error))

-- Secrets stay secret.
local seen
run = flow.graph("g"):add(flow.op("SecretOp", { gives = { keys = "stream<string>" }, run = function(ctx)
  ctx:emit("keys", flow.secret "hunter2")
end })):add(flow.op("UseOp", { needs = { keys = "stream<string>" }, run = function(ctx)
  for key in ctx:get "keys" do
    seen = tostring(key)
    ctx:log("got hunter2")
  end
end })):run()
check.equal(seen, "<redacted>", tostring(run.error))
check.equal(run:summary():find "hunter2", nil)

-- Views know that both execute at the same time.
local graph = flow.graph("g"):add(writer(1)):add(reader "sum"):add(Last)
check.same(graph:check {}, {})
check.contains(graph:mermaid(), '==>|"rows"|')
check.contains(graph:mermaid(), '-->|"rows"|')
check.contains(graph:dot(), 'label="rows", style=bold')
