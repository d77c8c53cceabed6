-- The spans of --otlp are valid OpenTelemetry: a collector's own reader finds each execution, attempt, program and parent.
-- python: opentelemetry.proto
local host, check, fs, flow = require "host", require "check", require "flow.fs", require "flow"
local json, scratch = require "flow.json", require "scratch"

-- Reads a file as a collector does, for which ids are in hexadecimal, and prints a line for each span.
local reader = [[
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2

def convert(value):
    if isinstance(value, list): return [convert(item) for item in value]
    if not isinstance(value, dict): return value
    return {name: base64.b64encode(bytes.fromhex(item)).decode() if name in ("traceId", "spanId", "parentSpanId")
            else convert(item) for name, item in value.items()}

def text(value):
    kind = value.WhichOneof("value")
    return "%g" % value.double_value if kind == "double_value" else str(getattr(value, kind))

def attributes(of):
    return {pair.key: text(pair.value) for pair in of.attributes}

data = json_format.ParseDict(convert(json.load(open(sys.argv[1]))), trace_pb2.TracesData())
resource = data.resource_spans[0]
spans = resource.scope_spans[0].spans
names = {span.span_id: attributes(span)["flowlua.path"] for span in spans}
assert len(names) == len(spans) and all(len(span.span_id) == 8 and len(span.trace_id) == 16 for span in spans)
print(json.dumps({"resource": attributes(resource.resource), "scope": resource.scope_spans[0].scope.name,
    "traces": sorted({span.trace_id.hex() for span in spans}), "spans": [{
    "name": span.name, "kind": span.kind, "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
    "flags": span.flags, "state": span.trace_state,
    "start": span.start_time_unix_nano, "finish": span.end_time_unix_nano, "status": span.status.code,
    "message": span.status.message, "attributes": attributes(span),
    "events": [[event.name, attributes(event)] for event in span.events]} for span in spans]}))
]]
local function read(path)
  local result = host.run(os.getenv "FLOWLUA_TEST_PYTHON", { "-c", reader, path })
  check.equal(result.stderr, "")
  return json.decode(result.stdout)
end

local script = [[
  local flow = require "flow"
  local ItemOp = flow.op("ItemOp", { needs = { x = "integer" }, retry = { attempts = 3, delay = 0.25 },
    run = function(ctx)
      flow.sleep(1)
      if ctx.index == 2 and ctx.attempt == 1 then ctx:fail "refused" end
      io.write("item ", ctx.index, " ", flow.exec { "printenv", "TRACEPARENT" }:await().stdout)
    end })
  local InnerOp = flow.op("InnerOp", function()
    io.write("inner ", flow.exec { "printenv", "TRACEPARENT" }:await().stdout)
  end)
  local OuterOp = flow.op("OuterOp", function() flow.new("child"):add(InnerOp):run() InnerOp:run() end)
  local JobOp = flow.op("JobOp", { thread = "worker", retry = 2, run = function()
    io.write("job ", flow.exec { "printenv", "TRACEPARENT" }:await().stdout)
  end })
  local ShareOp = flow.op("ShareOp", { thread = "worker", needs = { x = "integer" }, run = function(ctx)
    io.write("share ", ctx:get "x", " ", flow.exec { "printenv", "TRACEPARENT" }:await().stdout)
  end })
  local NextOp = flow.op("NextOp", function()
    return flow.resolved(1):next("worker", function()
      io.write("next ", flow.exec { "printenv", "TRACEPARENT" }:await().stdout)
    end)
  end)
  local ExecOp = flow.ops.ExecOp({ "printenv", "TRACEPARENT" }, { capture = false })
  io.write("outside ", flow.exec({ "printenv", "TRACEPARENT" }, { check = false }):await().stdout, "\n")
  local run = flow.new("publish"):data { list = { 1, 2, 3 } }
    :add_grouped(ItemOp, { input = "list", max_concurrent = 1, label = function(x) return "item-" .. x end })
    :add(OuterOp):add(JobOp):add_grouped(ShareOp, { input = "list" }):add(NextOp):add(ExecOp)
    :add(flow.op("OwnOp", function()
      local env = { TRACEPARENT = "mine" }
      io.write("own ", flow.exec({ "printenv", "TRACEPARENT" }, { env = env }):await().stdout)
      env.TRACEPARENT = false
      flow.exec({ "printenv", "TRACEPARENT" }, { env = env, check = false }):await()
    end))
    :add(flow.op("FailOp", function(ctx) ctx:fail "no luck" end)):run()
  run:otlp(arg[1])
]]
local folder, _ <close> = scratch.folder()
local path, second = folder .. "/spans.json", folder .. "/run.json"
local function start(environment, ...)
  return host.script(script, { second }, { before = { "--virtual-clock", ... }, environment = environment })
end
local result = start({ OTEL_RESOURCE_ATTRIBUTES = "team=a%2Cb, zone = 7 ,service.name=x", OTEL_SERVICE_NAME = "publisher" },
  "--otlp", path)
check.equal(result.status, 1)
local data = read(path)
check.equal(#data.traces, 1)
check.equal(data.scope, "flowlua")
check.equal(data.resource["service.name"], "publisher")
check.equal(data.resource.team, "a,b")
check.equal(data.resource.zone, "7")
check.equal(data.resource["telemetry.sdk.name"], "flowlua")

-- Each span is within its parent, whose name stands before its own.
local by_id, lines = {}, {}
for _, span in ipairs(data.spans) do by_id[span.id] = span end
for _, span in ipairs(data.spans) do
  local parent = by_id[span.parent]
  if parent then assert(span.start >= parent.start and span.finish <= parent.finish, span.name) end
  lines[#lines + 1] = ("%s > %s %d %s"):format(parent and parent.name or "", span.name, span.status,
    span.attributes["flowlua.outcome"])
end
table.sort(lines)
check.equal(table.concat(lines, "\n"), [[
 > publish 2 failed
ExecOp > printenv 1 succeeded
InnerOp > printenv 1 succeeded
InnerOp > printenv 1 succeeded
ItemOp > ItemOp 1 succeeded
ItemOp > ItemOp 1 succeeded
ItemOp > ItemOp 1 succeeded
ItemOp > ItemOp attempt 1 succeeded
ItemOp > ItemOp attempt 2 failed
ItemOp > printenv 1 succeeded
ItemOp > printenv 1 succeeded
ItemOp attempt > printenv 1 succeeded
JobOp > printenv 1 succeeded
NextOp > printenv 1 succeeded
OuterOp > InnerOp 1 succeeded
OuterOp > child 1 succeeded
OwnOp > printenv 1 succeeded
OwnOp > printenv 1 succeeded
ShareOp > ShareOp 1 succeeded
ShareOp > ShareOp 1 succeeded
ShareOp > ShareOp 1 succeeded
ShareOp > printenv 1 succeeded
ShareOp > printenv 1 succeeded
ShareOp > printenv 1 succeeded
child > InnerOp 1 succeeded
publish > ExecOp 1 succeeded
publish > FailOp 2 failed
publish > ItemOp 1 succeeded
publish > JobOp 1 succeeded
publish > NextOp 1 succeeded
publish > OuterOp 1 succeeded
publish > OwnOp 1 succeeded
publish > ShareOp 1 succeeded]])

-- Finds a span.
local function find(name, test)
  for _, span in ipairs(data.spans) do
    if span.name == name and (not test or test(span.attributes)) then return span end
  end
  error("no span " .. name, 2)
end
local item = find("ItemOp", function(of) return of["flowlua.index"] == "2" end)
check.same(item.events, {
  { "retry", { ["flowlua.attempt"] = "1", ["flowlua.wait"] = "1", ["exception.type"] = "error",
    ["exception.message"] = "refused" } },
})
item.attributes["flowlua.id"] = nil
check.same(item.attributes, {
  ["flowlua.kind"] = "op", ["flowlua.path"] = "publish/ItemOp #2 item-2", ["flowlua.outcome"] = "succeeded",
  ["flowlua.index"] = "2", ["flowlua.label"] = "item-2", ["flowlua.queued"] = "1", ["flowlua.attempts"] = "2",
})
check.equal(math.tointeger(item.finish) - item.start, 3000000000)
local root, failed, program = find "publish", find "FailOp", find "printenv"
check.equal(root.parent, "")
check.equal(root.message, "no luck")
check.equal(root.attributes["flowlua.run"]:match "^%x+%-%d+$", root.attributes["flowlua.run"])
check.same(failed.events, { { "exception", { ["exception.type"] = "error", ["exception.message"] = "no luck" } } })
check.equal(failed.attributes["error.type"], "error")
check.equal(program.kind, 3)
check.equal(program.attributes["process.executable.name"], "printenv")
check.equal(program.attributes["process.command_line"], "printenv TRACEPARENT")
check.equal(program.attributes["process.exit.code"], "0")

-- Programs get the span of their op, in workers too; outside of runs there is none.
local function spans_of(output)
  local seen = {}
  for word, trace, id, flags in output:gmatch "([%w ]-) ?00%-(%x+)%-(%x+)%-(%x%x)\n" do
    check.equal(trace, data.traces[1])
    seen[#seen + 1] = ("%s: %s %s"):format(word, by_id[id].attributes["flowlua.path"], flags)
    check.lacks(by_id[id].name, "attempt")
  end
  table.sort(seen)
  return table.concat(seen, "\n")
end
local expected = [[
: publish/ExecOp 01
inner: publish/OuterOp/InnerOp 01
inner: publish/OuterOp/child/InnerOp 01
item 1: publish/ItemOp #1 item-1 01
item 2: publish/ItemOp #2 item-2 01
item 3: publish/ItemOp #3 item-3 01
job: publish/JobOp 01
next: publish/NextOp 01
share 1: publish/ShareOp #1 01
share 2: publish/ShareOp #2 01
share 3: publish/ShareOp #3 01]]
check.equal(spans_of(result.stdout), expected)
check.contains(result.stdout, "outside \n", "own mine\n")

-- The method writes the same spans.
local one = read(second)
check.equal(one.traces[1], data.traces[1])
check.equal(#one.spans, #data.spans)

-- TRACEPARENT is continued, also without the option.
local trace, parent = ("0af7651916cd43dd8448eb211c80319c"), "b7ad6b7169203331"
result = start({ TRACEPARENT = "00-" .. trace .. "-" .. parent .. "-00", TRACESTATE = "vendor=1" }, "--otlp=" .. path)
data, by_id = read(path), {}
for _, span in ipairs(data.spans) do by_id[span.id] = span end
check.same(data.traces, { trace })
root = find "publish"
check.same({ root.parent, root.flags, root.state }, { parent, 0, "vendor=1" })
check.equal(spans_of(result.stdout:gsub("outside [^\n]*", "")), (expected:gsub("01\n", "00\n"):gsub("01$", "00")))
check.contains(result.stdout, "outside 00-" .. trace .. "-" .. parent .. "-00")
result = start { TRACEPARENT = "cc-" .. trace .. "-" .. parent .. "-09-more" }
data, by_id = read(second), {}
for _, span in ipairs(data.spans) do by_id[span.id] = span end
check.same(data.traces, { trace })
check.equal(find("publish").parent, parent)
check.contains(result.stdout, "job 00-" .. trace .. "-")
-- An invalid one is ignored: without the option programs get it as it is.
for _, wrong in ipairs { "ff-" .. trace .. "-" .. parent .. "-01", "00-" .. trace:upper() .. "-" .. parent .. "-01",
  "00-" .. ("0"):rep(32) .. "-" .. parent .. "-01", "00-" .. trace .. "-" .. ("0"):rep(16) .. "-01",
  "00-" .. trace .. "-" .. parent .. "-01-x", "00-" .. trace .. "-" .. parent, "nonsense" } do
  local script_of_op = [[
    local flow = require "flow"
    flow.op("AOp", function() flow.exec({ "printenv", "TRACEPARENT" }, { capture = false }):await() end):run()
  ]]
  local plain = host.script(script_of_op, {}, { environment = { TRACEPARENT = wrong } })
  check.equal(plain.stdout, wrong .. "\n")
  local traced = host.script(script_of_op, {}, { environment = { TRACEPARENT = wrong }, before = { "--otlp", path } })
  data = read(path)
  check.equal(find("AOp").parent, "")
  check.equal(traced.stdout, ("00-%s-%s-01\n"):format(data.traces[1], find("AOp").id))
  assert(data.traces[1] ~= trace:lower())
end
-- Without both there is no variable.
check.contains(start({ TRACEPARENT = "" }).stdout, "own mine\n")
check.lacks(start({}).stdout, "00-")
-- A run that hasn't ended has no status.
local SlowOp = flow.op("SlowOp", function() flow.sleep(1) end)
local slow = SlowOp:start()
flow.sleep(0.5)
slow:otlp(path)
data = read(path)
check.equal(data.spans[1].status, 0)
check.equal(math.tointeger(data.spans[1].finish) - data.spans[1].start, 500000000)
slow:await()
check.contains(slow:otlp(), '"status":{"code":1}')
