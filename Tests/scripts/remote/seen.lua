-- Nodes are seen: the timeline, the trace and the spans name the worker of a remote op, and its progress is among the events.
-- clock: real: other processes execute the ops
local check, fs, json = require "check", require "flow.fs", require "flow.json"
local remote, servers = require "remote", require "servers"

local server <close> = remote.server()
server:join "m1"
local collector <close> = servers.hostile()
local id = servers.id()
local page, trace = server.folder .. "/page.html", server.folder .. "/trace.json"
local result = server:run([[
  local RenderOp = flow.op("RenderOp", { thread = "remote", gives = { lane = "string" }, run = function(ctx)
    ctx:progress(3, 4)
    ctx:log "rendered"
    require "flow".sleep(0.01)
    ctx:set("lane", ctx.lane)
  end })
  local run = flow.new("frames"):add(RenderOp):add(flow.op("LocalOp", function() end)):run()
  for _, event in ipairs(run:events()) do
    if event.kind == "progress" then print("progress", event.path, event.done, event.total) end
    if event.op == "RenderOp" and event.kind == "log" then print(event.lane, event.message) end
  end
  print(run.data.lane)
]], "--timeline", page, "--trace", trace, "--otlp", collector:url("/echo", { id = id }))
check.equal(result.stderr, "")
local lane = result.stdout:match "(%S*)\n$"
check.match(lane, "^m1/[12]$")
check.equal(result.stdout, ("progress\tframes/RenderOp\t3\t4\n%s\trendered\n%s\n"):format(lane, lane))

-- The page has the name of each lane of a span.
local data = json.decode(fs.read(page):match '<script type="application/json" id="data">(.-)</script>')
local spans, places, name = data.runs[1].spans, {}, 1
for k, step in ipairs(spans.name) do
  name = name + step
  places[data.runs[1].names[name]] = spans.lanes[tostring(spans.lane[k])] or spans.lane[k]
end
check.same(places, { frames = 0, RenderOp = lane, LocalOp = 0 })

-- The trace has a row with this name, and the slice of the op is there, as is the time for which it slept.
local rows, slices = {}, {}
for _, event in ipairs(json.decode(fs.read(trace)).traceEvents) do
  if event.name == "thread_name" then rows[event.tid] = event.args.name end
  if event.ph == "X" then slices[event.name] = event.tid end
end
check.equal(rows[slices.RenderOp], lane)
check.equal(rows[slices.sleep], lane)
check.equal(rows[slices.LocalOp], "main")

local requests = collector:requests(id)
check.equal(#requests, 1)
local workers = {}
for _, span in ipairs(json.decode(requests[1].body).resourceSpans[1].scopeSpans[1].spans) do
  for _, attribute in ipairs(span.attributes) do
    if attribute.key == "flowlua.worker" then workers[span.name] = attribute.value.stringValue or attribute.value.intValue end
  end
end
check.same(workers, { RenderOp = lane })
