-- A kept op isn't shown as executed: events, reports, traces, spans and drawings say that it is kept.
-- clock: real: the script is another program
local flow, check, kept = require "flow", require "check", require "kept"

local script = kept.script [[
local LoadOp = flow.op("LoadOp", function(ctx) ctx:set("list", { 1, 2, 3 }) end)
local ItemOp = flow.op("ItemOp", { needs = { item = "integer" }, run = function(ctx)
  if ctx.index == 3 and os.getenv "END" then ctx:fail "no" end
end })
local WorkerOp = flow.op("WorkerOp", { thread = "worker", needs = { n = "integer" }, gives = { m = "integer" },
  run = function(ctx) ctx:set("m", ctx:get "n") end })
local LastOp = flow.op("LastOp", function(ctx) if os.getenv "END" then ctx:fail "no" end end)
local run = flow.new("work"):add(LoadOp)
  :add_grouped(WorkerOp, { input = "list", output = "copies", max_concurrent = 2 })
  :add_grouped(ItemOp, { input = "copies", as = "item", max_concurrent = 1 }):add(LastOp):start()
pcall(run.wait, run)
if not os.getenv "END" then
  local found = {}
  for _, event in ipairs(run:events()) do
    if event.kind == "kept" then found[#found + 1] = event.op .. " " .. event.message:gsub("r%w+$", "ID") end
  end
  table.sort(found)
  print(table.concat(found, "\n"))
  print(run:report())
  print(run:dot())
end
]]
script:run { "--keep", environment = { END = "1" } }
local trace, spans = script.folder .. "/trace.json", script.folder .. "/spans.json"
local result = script:run { "--resume", "--trace", trace, "--otlp", spans }
check.equal(result.status, 0)
check.contains(result.stdout, "ItemOp Kept from run ID\nItemOp Kept from run ID\nLoadOp Kept from run ID\n"
    .. "WorkerOp Kept from run ID\nWorkerOp Kept from run ID\nWorkerOp Kept from run ID\n",
  "| duration | ops | failed | kept |", " | 2 | 0 | 6 |", "| op | runs | kept | failed |", "| `WorkerOp` | 0 | 3 | 0 |",
  "| `ItemOp` | 1 | 2 | 0 |", "| `LoadOp` | 0 | 1 | 0 | 0 | 0 s |", "1 succeeded, 2 kept in ", "kept")

local file <close> = assert(io.open(trace))
local slices = 0
for _, event in ipairs(flow.json.decode(file:read "a").traceEvents) do
  if event.cat == "kept" then
    slices = slices + 1
    check.equal(event.dur, 0)
    check.equal(event.args.outcome, "kept")
    assert(event.args.kept:find "^Kept from run r")
  end
end
check.equal(slices, 6)
local other <close> = assert(io.open(spans))
local count = 0
for _, span in ipairs(flow.json.decode(other:read "a").resourceSpans[1].scopeSpans[1].spans) do
  for _, attribute in ipairs(span.attributes) do
    if attribute.key == "flowlua.kept" then
      count = count + 1
      check.equal(span.startTimeUnixNano, span.endTimeUnixNano)
      check.equal(span.status.code, 1)
    end
  end
end
check.equal(count, 6)
