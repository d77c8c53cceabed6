-- Events, reports, spans and drawings show what was undone, for how long, and what couldn't be undone.
-- expect-stderr: f failed: [f/CreateOp #1] stuck
-- expect-stderr: g failed: [g/FailOp] no
local flow, check = require "flow", require "check"

local CreateOp = flow.op("CreateOp", {
  run = function() flow.sleep(1) end,
  undo = function(ctx)
    flow.exec { "true" }:await()
    flow.sleep(2)
    if ctx.index == 1 then ctx:fail "stuck" end
  end,
})
local MailOp = flow.op("MailOp", { run = function() flow.sleep(1) end, undo = function() flow.sleep(3) end })
local run = flow.new("f"):add(flow.new("inner"):add(MailOp))
  :add_grouped(CreateOp, { input = "list", as = "item", max_concurrent = 2 })
  :add(flow.op("FailOp", function(ctx) ctx:fail "no" end))
  :run { list = { "a", "b" } }
check.equal(run.error.message, "no")

local events = {}
for _, event in ipairs(run:events()) do
  if event.kind == "undo_start" then
    events[#events + 1] = ("%g %s"):format(event.time, event.path)
  elseif event.kind == "undo" then
    events[#events + 1] = ("%g %s from %g: %s, %s %s %s"):format(event.time, event.path, event.started,
      event.message, event.outcome, event.error, event.error_kind)
  end
end
check.same(events, {
  "2 f/CreateOp #2", "4 f/CreateOp #2 from 2: successfully, succeeded nil nil",
  "4 f/CreateOp #1", "6 f/CreateOp #1 from 4: withError: stuck, failed stuck error",
  "6 f/inner/MailOp", "9 f/inner/MailOp from 6: successfully, succeeded nil nil",
})

local report = run:report()
check.contains(report, "| duration | ops | failed | undone | undos failed |", "| 9 s | 4 | 1 | 2 | 1 |",
  "- `f/FailOp` failed: `no`\n- `f/CreateOp #1` couldn't be undone: `stuck`\n",
  "### Undos\n\n| op | undone | failed | total | longest |\n|---|---:|---:|---:|---:|\n"
    .. "| `CreateOp` | 1 | 1 | 4 s | 2 s |\n| `MailOp` | 1 | 0 | 3 s | 3 s |\n",
  "| undo of `f/CreateOp` × 2, the longest: `#2` with 2 s | 4 s | 44 % |",
  "| undo of `f/inner/MailOp` | 3 s | 33 % |", "| `CreateOp` | 2 | 0 | 0 | 2 s |")
check.lacks(report, "the flow itself")
check.contains(run:dot(), "2 succeeded in 1s (median), 1 undone, 1 couldn't be undone", "succeeded in 1s, undone")

-- An undo is a span within its op's, and its programs are within the undo.
local spans, undos = {}, {}
for _, span in ipairs(flow.json.decode(run:otlp()).resourceSpans[1].scopeSpans[1].spans) do
  spans[span.spanId] = span
end
local function value(span, name)
  for _, attribute in ipairs(span.attributes) do
    if attribute.key == name then return attribute.value.stringValue end
  end
end
local programs = 0
for _, span in pairs(spans) do
  local parent = spans[span.parentSpanId]
  if value(span, "flowlua.kind") == "undo" then
    check.equal(span.name, "undo " .. parent.name)
    check.equal(value(span, "flowlua.path"), value(parent, "flowlua.path"))
    check.equal(value(parent, "flowlua.outcome"), "succeeded")
    local event = span.events[1]
    undos[#undos + 1] = ("%s %s %d %s"):format(value(span, "flowlua.path"), value(span, "flowlua.outcome"),
      span.status.code, event and event.name or "")
  elseif span.name == "true" then
    programs = programs + 1
    check.equal(parent.name, "undo CreateOp")
  end
end
table.sort(undos)
check.equal(programs, 2)
check.same(undos, {
  "f/CreateOp #1 failed 2 exception", "f/CreateOp #2 succeeded 1 ", "f/inner/MailOp succeeded 1 ",
})

-- While an undo executes, the views say so.
local LongOp = MailOp:with { name = "LongOp" }
local open = flow.new("g"):add(LongOp):add(flow.op("FailOp", function(ctx) ctx:fail "no" end)):start()
flow.sleep(2)
check.contains(open:report(), "`g/LongOp` is being undone for 1 s.")
check.contains(open:trace(), '"name":"undo LongOp"', '"outcome":"running"')
check.contains(open:otlp(), '"name":"undo LongOp"')
pcall(open.wait, open)
check.contains(open:report(), "| `LongOp` | 1 | 0 | 3 s | 3 s |")
-- Nobody has to look at the error of the undo: the script reports it.
os.exit(0)
