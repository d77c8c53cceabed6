-- A report has the numbers, the problems, the critical path and the ops of a run, as its events have them.
local flow, check, fs = require "flow", require "check", require "flow.fs"
local scratch = require "scratch"

local ItemOp = flow.op("ItemOp", {
  needs = { x = "integer" },
  retry = { attempts = 3, delay = 0.25 },
  run = function(ctx)
    flow.sleep(1)
    if ctx.index == 2 and ctx.attempt < 3 then ctx:fail "connection refused" end
  end,
})
local FetchOp = flow.op("FetchOp", {
  needs = { x = "integer" },
  run = function(ctx) flow.sleep(0.5) if ctx.index % 2 == 1 then ctx:fail "HTTP 404" end end,
})
local LastOp = flow.op("LastOp", function(ctx) flow.sleep(2) ctx:fail "no luck" end)
local run = flow.new("publish")
  :data { list = { 1, 2, 3, 4, 5, 6 } }
  :add_grouped(ItemOp, { input = "list", max_concurrent = 3 })
  :add_grouped(FetchOp, { input = "list", max_concurrent = 6, allow_failure = true })
  :add(LastOp)
  :run()
check.equal(run.ok, false)

local text = run:report()
local starts, failures, retries = 0, 0, 0
for _, event in ipairs(run:events()) do
  if event.kind == "start" then starts = starts + 1 end
  if event.kind == "retry" then retries = retries + 1 end
  if event.kind == "finish" and event.message ~= "successfully" then failures = failures + 1 end
end
check.contains(text, "## `publish` failed\n\n`no luck`\n",
  "| duration | ops | failed | attempts repeated | work in all | parallelism on average |\n",
  ("\n| 6.75 s | %d | %d | %d | 13 s | 1.9 |\n"):format(starts, failures, retries))
check.contains(text, [[
### Problems

- `FetchOp` × 3 failed: `HTTP 404` (`#1`, `#3`, `#5`)
- `publish/LastOp` failed: `no luck`
- `publish/ItemOp #2` succeeded on attempt 3 after `connection refused`; kept its group waiting for 2.25 s
]])
check.contains(text, [[
| part | time | share |
|---|---:|---:|
| `publish/ItemOp #2` | 3 s | 44 % |
| `publish/ItemOp #2`: delay before another attempt | 500 ms | 7 % |
| `publish/ItemOp #2`: wait for its turn | 750 ms | 11 % |
]])
check.contains(text, "\n| `publish/LastOp` | 2 s | 30 % |\n")
check.contains(text, [[
| op | runs | failed | retried | total | median | 95 % | longest | longest queued |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| `ItemOp` | 6 | 0 | 2 | 9.25 s | 1 s | 4.25 s | 4.25 s | 1 s |
| `FetchOp` | 6 | 3 | 0 | 3 s | 500 ms | 500 ms | 500 ms | 0 s |
| `LastOp` | 1 | 1 | 0 | 2 s | 2 s | 2 s | 2 s | 0 s |
]])

-- With a path it is written to a file, and nothing is returned.
local folder, _ <close> = scratch.folder()
local path = folder .. "/report.md"
check.equal(select("#", run:report(path)), 0)
check.equal(fs.read(path), text)
check.equal(#fs.list(folder), 1, "files in the folder")

-- A run that hasn't ended has a report of what has happened, an empty one as well.
local slow = flow.new("slow"):add(flow.op("SlowOp", function() flow.sleep(10) end)):start()
flow.sleep(4)
check.contains(slow:report(), "## `slow` is still running\n", "\n| 4 s | 1 | 0 |", "| `slow/SlowOp` | 4 s | 100 % |")
slow:cancel()
pcall(slow.await, slow)
check.contains(slow:report(), "## `slow` was cancelled\n", "\n| 4 s | 1 | 0 | 1 |")
local empty = flow.new("empty"):run():report()
check.contains(empty, "## `empty` succeeded\n", "\n| 0 s | 0 | 0 | 0 | 0 s | 0 |\n")
check.lacks(empty, "###")

-- Misuse, and files that can't be written.
for _, name in ipairs { "report", "trace" } do
  check.usage(function() run[name](1) end, name, "self")
  check.usage(function() run[name](run, {}) end, name, "#1", "path expected, got table")
  local e = check.raises(function() run[name](run, folder .. "/none/x") end, "can't write '", "No such file")
  check.equal(e.name, "ENOENT")
  check.raises(function() run[name](run, folder) end, "can't write '")
end

-- Of a graph the path follows its edges, and the report says how much earlier the run could have ended without an op.
local function op(name, needs, gives, seconds, item)
  return flow.op(name, { needs = needs, gives = gives, primary_input = item, run = function(ctx)
    flow.sleep(seconds)
    for key in pairs(gives) do ctx:set(key, 1) end
  end })
end
local function part(of, name, ...)
  check.contains(of:report(), ("| `%s` | %s | %s | %s |\n"):format(name, ...))
end
local graph = flow.graph("build"):add(op("LinkOp", { a = "any", b = "any" }, {}, 2))
  :add(op("OtherOp", {}, {}, 3)):add(op("BOp", {}, { b = "any" }, 5)):add(op("AOp", { n = "any" }, { a = "any" }, 3))
  :add(op("NOp", {}, { n = "any" }, 3))
run = graph:run()
check.contains(run:report(), "| part | time | share | shorter without it |\n|---|---:|---:|---:|\n")
-- Without AOp or NOp the run would wait for BOp.
part(run, "build/NOp", "3 s", "38 %", "1 s")
part(run, "build/AOp", "3 s", "38 %", "1 s")
part(run, "build/LinkOp", "2 s", "25 %", "2 s")
check.lacks(run:report():match "waited for.-### Ops", "OtherOp")
-- One of several that end at a time counts: the one that the next op has waited for.
run = flow.graph("tie"):add(op("AOp", {}, { a = "any" }, 3)):add(op("OtherOp", {}, {}, 3)):add(op("LastOp", { a = "any" }, {}, 1)):run()
part(run, "tie/AOp", "3 s", "75 %", "1 s")
part(run, "tie/LastOp", "1 s", "25 %", "1 s")
-- With one op at a time all that is before an op has kept it waiting; items that pass between groups don't wait for all.
run = flow.graph("one", { max_concurrent = 1 }):add(op("AOp", {}, {}, 3)):add(op("BOp", {}, { b = "any" }, 1))
  :add(op("COp", { b = "any" }, {}, 1)):run()
part(run, "one/AOp", "3 s", "60 %", "3 s")
run = flow.graph("pipe"):data { list = { 1, 2, 3, 4 } }
  :add_grouped(op("FirstOp", { i = "any" }, { j = "any" }, 2), { input = "list", output = "js", max_concurrent = 1 })
  :add_grouped(op("NextOp", { j = "any" }, { k = "any" }, 3), { input = "js", output = "ks", max_concurrent = 1 }):run()
check.equal(run.duration, 14.0)
check.match(run:report(), "NextOp[^\n]*| 12 s | 86 %% | 6 s |")
-- How long ops that write and read a stream wait for each other isn't known.
run = flow.graph("stream"):add(flow.op("WriteOp", { gives = { rows = "stream<integer>" }, run = function(ctx)
  for row = 1, 3 do flow.sleep(1) ctx:emit("rows", row) end
end })):add(flow.op("ReadOp", { needs = { rows = "stream<integer>" }, gives = { sum = "integer" }, run = function(ctx)
  local sum = 0
  for row in ctx:get "rows" do sum = sum + row end
  flow.sleep(1)
  ctx:set("sum", sum)
end })):add(op("LastOp", { sum = "integer" }, {}, 1)):run()
part(run, "stream/ReadOp", "4 s", "80 %", "")
part(run, "stream/LastOp", "1 s", "20 %", "1 s")
