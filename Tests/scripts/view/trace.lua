-- A trace has a slice for each attempt of each execution, in rows in which slices only nest.
local flow, check, fs, json = require "flow", require "check", require "flow.fs", require "flow.json"
local scratch = require "scratch"

local ItemOp = flow.op("ItemOp", {
  needs = { x = "integer" },
  retry = { attempts = 3, delay = 0.25 },
  run = function(ctx)
    flow.sleep(ctx:get "x" / 8)
    if ctx.index == 2 and ctx.attempt < 3 then ctx:fail "refused" end
  end,
})
local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { x = "integer" }, run = function() end })
local InnerOp = flow.op("InnerOp", function() flow.sleep(1) end)
local OuterOp = flow.op("OuterOp", function() InnerOp:run() InnerOp:run() end)
local FailOp = flow.op("FailOp", function(ctx) flow.sleep(1) ctx:fail "no luck" end)
local run = flow.new("publish")
  :data { list = { 1, 2, 3, 4, 5, 6, 7, 8 } }
  :add_grouped(ItemOp, {
    input = "list", max_concurrent = 4, label = function(x) return "item-" .. x end,
  })
  :add_grouped(WorkerOp, { input = "list" })
  :add(flow.new("nested"):add(OuterOp):add_parallel(InnerOp, OuterOp))
  :add(FailOp)
  :run()
check.equal(run.ok, false)

local function by_phase(text)
  local found = { M = {}, X = {}, i = {}, C = {} }
  local trace = json.decode(text)
  check.equal(trace.displayTimeUnit, "ms")
  for _, event in ipairs(trace.traceEvents) do table.insert(found[event.ph], event) end
  return found, trace
end
local found = by_phase(run:trace())

-- As many slices as attempts, with the times of the events.
local begun, ended, attempts, retries = {}, {}, 0, 0
for _, event in ipairs(run:events()) do
  if event.kind == "start" then
    begun[event.id] = event
    attempts = attempts + 1
  elseif event.kind == "finish" then
    ended[event.id] = event
  elseif event.kind == "retry" then
    attempts, retries = attempts + 1, retries + 1
  end
end
local function near(a, b) return math.abs(a - b) < 0.01 end
local slices = 0
for _, slice in ipairs(found.X) do
  local start, finish = begun[slice.args.id], ended[slice.args.id]
  if slice.cat == "op" then
    slices = slices + 1
    check.equal(slice.args.path, start.path)
    check.equal(slice.args.op, start.op)
    check.equal(slice.args.index, start.index)
    if slice.args.attempt == 1 then assert(near(slice.ts, start.time * 1e6), slice.name) end
    if slice.args.attempt == finish.attempt then
      assert(near(slice.ts + slice.dur, finish.time * 1e6), slice.name)
      check.equal(slice.args.outcome, finish.message == "successfully" and "succeeded" or "failed")
    else
      check.equal(slice.args.error, "refused")
    end
  end
end
-- The start of the nested flow is an event too.
check.equal(slices, attempts - 1)
check.equal(retries, 2)
local instants = {}
for _, instant in ipairs(found.i) do
  instants[#instants + 1] = ("%s %s %s"):format(instant.name, instant.args.path, instant.args.message)
end
check.same(instants, {
  "failure publish no luck", "retry publish/ItemOp #2 item-2 refused", "retry publish/ItemOp #2 item-2 refused",
  "failure publish/FailOp no luck",
})

-- Slices of a row follow each other, or one is within the other.
local rows, names = {}, {}
for _, slice in ipairs(found.X) do
  rows[slice.tid] = rows[slice.tid] or {}
  table.insert(rows[slice.tid], slice)
end
for _, row in pairs(rows) do
  table.sort(row, function(a, b) return a.ts < b.ts or a.ts == b.ts and a.dur > b.dur end)
  local open = {}
  for _, slice in ipairs(row) do
    while #open > 0 and open[#open] <= slice.ts + 0.01 do table.remove(open) end
    assert(#open == 0 or open[#open] >= slice.ts + slice.dur - 0.01, slice.args.path .. " overlaps")
    open[#open + 1] = slice.ts + slice.dur
  end
end
for _, meta in ipairs(found.M) do
  if meta.name == "thread_name" then names[#names + 1] = meta.args.name end
end
check.same({ names[1], names[2] }, { "main", "main 2" })
check.contains(table.concat(names, ","), "worker 1")
-- The counter ends with no op.
check.equal(found.C[#found.C].args.ops, 0)
local most = 0
for _, count in ipairs(found.C) do most = math.max(most, count.args.ops) end
check.equal(most, 4)

-- With a path it is a file. A run that hasn't ended has slices up to now, an empty one has its own.
local folder, _ <close> = scratch.folder()
local path = folder .. "/trace.json"
check.equal(select("#", run:trace(path)), 0)
check.equal(fs.read(path), run:trace())
local slow = flow.new("slow"):add(InnerOp):start()
flow.sleep(0.5)
found = by_phase(slow:trace())
check.equal(#found.X, 2)
check.equal(found.X[2].dur, 500000)
check.equal(found.X[2].args.outcome, "running")
slow:await()
found = by_phase(flow.new("empty"):run():trace())
check.equal(#found.X, 1)
check.equal(found.X[1].dur, 0)
