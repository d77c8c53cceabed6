-- Results of a group pass to the next group of a graph one by one: each stage has its own limits, retries and failures.
local flow, check = require "flow", require "check"
local function stage(name, from, to, seconds, options)
  options = options or {}
  options.needs, options.gives = { [from] = "integer" }, { [to] = "integer" }
  options.run = options.run or function(ctx)
    flow.sleep(type(seconds) == "function" and seconds(ctx:get(from)) or seconds)
    ctx:set(to, ctx:get(from) + 1)
  end
  return flow.op(name, options)
end
-- The starts of an op's items: their numbers and times.
local function lines(run, op)
  local found = {}
  for _, event in ipairs(run:events()) do
    if event.kind == "start" and event.op == op then found[#found + 1] = ("#%d@%g"):format(event.index, event.time) end
  end
  return table.concat(found, " ")
end
local list = { 10, 20, 30, 40 }

-- Each item starts as soon as its result is there; the graph takes as long as its slowest stage.
local Scale, Upload = stage("ScaleOp", "photo", "image", 1), stage("UploadOp", "image", "url", 2)
local function publish(first, second, middle)
  return flow.graph("publish")
    :add_grouped(Scale, { input = "photos", output = "images", max_concurrent = first or 4, as = "photo" })
    :add_grouped(middle or Upload, { input = "images", output = "urls", max_concurrent = second or 2, as = "image" })
end
local run = publish(1, 4):run { photos = list }
check.same({ run.state, run.duration, run.data.images, run.data.urls },
  { "succeeded", 6.0, { 11, 21, 31, 41 }, { 12, 22, 32, 42 } }, tostring(run.error))
check.equal(lines(run, "UploadOp"), "#1@1 #2@2 #3@3 #4@4")
check.equal(publish(4, 2):run({ photos = list }).duration, 5.0)
check.equal(publish(2, 1):run({ photos = list }).duration, 9.0)
-- In the order of the list, whichever is ready first; several groups get all; an op waits for the list.
local Slow = stage("ScaleOp", "photo", "image", function(n) return n == 10 and 5 or 1 end)
local Sum = flow.op("SumOp", { needs = { images = "integer[]" }, gives = { sum = "integer" }, run = function(ctx)
  local sum = 0
  for _, image in ipairs(ctx:get "images") do sum = sum + image end
  ctx:set("sum", sum)
end })
run = flow.graph("g")
  :add_grouped(Slow, { input = "photos", output = "images", as = "photo" })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" })
  :add_grouped(stage("HashOp", "image", "hash", 1), { input = "images", output = "hashes", as = "image", max_concurrent = 1 })
  :add(Sum):run { photos = list }
check.same({ run.data.urls, run.data.hashes, run.data.sum }, { { 12, 22, 32, 42 }, { 12, 22, 32, 42 }, 104 })
check.equal(lines(run, "HashOp"), "#1@5 #2@6 #3@7 #4@8")
-- Three stages, an iterator before them, and workers.
local n = 0
local function numbers() if n < 5 then n = n + 1 return n end end
run = flow.graph("g")
  :add_grouped(stage("AOp", "a", "b", 1), { input = "as", output = "bs", max_concurrent = 1, as = "a" })
  :add_grouped(stage("BOp", "b", "c", 1, { thread = "worker", run = function(ctx) ctx:set("c", ctx:get "b" + 1) end }),
    { input = "bs", output = "cs", as = "b" })
  :add_grouped(stage("COp", "c", "d", 1), { input = "cs", output = "ds", as = "c" }):run { as = numbers }
check.same({ run.data.ds, run.duration }, { { 4, 5, 6, 7, 8 }, 6.0 }, tostring(run.error))

-- A failed item's place is passed over, or holds absent; retries and limits of each stage are its own.
local Odd = stage("ScaleOp", "photo", "image", 1, { retry = 2, run = function(ctx)
  if ctx:get "photo" == 20 then ctx:fail "broken" end
  ctx:set("image", ctx:get "photo" + 1)
end })
for _, absent in ipairs { false, 0 } do
  run = flow.graph("g")
    :add_grouped(Odd, { input = "photos", output = "images", as = "photo", allow_failure = true, absent = absent or nil })
    :add_grouped(Upload, { input = "images", output = "urls", as = "image", limit = flow.limit("up", 1) }):run { photos = list }
  check.same(run.data.urls, absent and { 12, 1, 32, 42 } or { 12, 32, 42 })
end
-- A failure stops both; with keep_going the second one fails with the first.
run = flow.graph("g"):add_grouped(Odd, { input = "photos", output = "images", as = "photo", max_concurrent = 1 })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" }):run { photos = list }
check.same({ run.state, run.error.message, run.data.urls }, { "failed", "broken" })
run = flow.graph("g", { keep_going = true })
  :add_grouped(Odd, { input = "photos", output = "images", as = "photo", max_concurrent = 1 })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" })
  :add(stage("LastOp", "url", "last", 1), { after = "UploadOp" }):run { photos = list, url = 1 }
check.same({ run.error.message, run.data.last, run.data.urls }, { "broken" })
-- Empty lists, conditions, early ends, cancels.
run = publish():run { photos = {} }
check.contains(run.error.message, "<photos> is not empty")
run = flow.graph("g"):add_grouped(Scale, { input = "photos", output = "images", as = "photo", allow_empty = true })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image", allow_empty = true }):run { photos = {} }
check.same({ run.state, run.data.urls }, { "succeeded", {} }, tostring(run.error))
run = flow.graph("g")
  :add_grouped(Scale, { input = "photos", output = "images", as = "photo" }, { when = function() return false end })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" }):run { photos = list }
check.same({ run.state, run.data.urls }, { "succeeded" })
check.contains(run:summary(), "[UploadOp] Skipped: needs <images>, which [ScaleOp] would give")
run = flow.graph("g"):add_grouped(Scale, { input = "photos", output = "images", as = "photo" })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" }, { when = function(data) return #data.images == 4 end })
  :run { photos = list }
check.same({ run.duration, run.data.urls }, { 6.0, { 12, 22, 32, 42 } })
run = flow.graph("g")
  :add_grouped(Scale, { input = "photos", output = "images", as = "photo", max_concurrent = 1,
    stop_when = function(_, ended) return ended == 2 end })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" }):run { photos = list }
check.same({ run.data.images, run.data.urls }, { { 11, 21 }, { 12, 22 } })
local cancelled = publish(1, 1):start { photos = list }
flow.sleep(1.5)
cancelled:cancel()
cancelled:wait()
check.equal(cancelled.state, "cancelled")
run = flow.graph("g", { max_concurrent = 1 }):add_grouped(Scale, { input = "photos", output = "images", as = "photo" })
  :add_grouped(Upload, { input = "images", output = "urls", as = "image" }):run { photos = list }
check.same(run.data.urls, { 12, 22, 32, 42 })

-- The example takes less time as a graph than as a flow, and does the same.
local host = require "host"
local function example(words)
  local result = host.run(host.binary, { "--virtual-clock", "--report", "/dev/stderr", "examples/publish.lua", "1", words })
  check.equal(result.status, 0)
  return result.stdout, result.stderr:match "| (%S+ s) | 68 | 1 | 5 |"
end
local chain, chained = example()
local graph, graphed = example "graph"
check.same({ graph, chained, graphed }, { chain, "12.4 s", "10.7 s" })
