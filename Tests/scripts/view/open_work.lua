-- Programs and requests are shown while they are running: in events, traces, spans, reports and pages.
-- clock: real: programs and requests take time
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local url = server:url "/never"
local address = url:match "^[^?]+"

local WorkOp = flow.op("WorkOp", function()
  local short = flow.exec { "true" }
  local long, request = flow.exec { "sleep", "100.25" }, flow.http { url = url }
  local timed = flow.exec({ "sleep", "100.25" }, { timeout = 0.01 })
  short:await()
  pcall(timed.await, timed)
  pcall(long.await, long)
  pcall(request.await, request)
end)
local WorkerOp = flow.op("WorkerOp", { thread = "worker", run = function()
  require("flow").exec { "sleep", "100.5" }:await()
end })
local run = flow.new("f"):add_parallel(WorkOp, WorkerOp):start()

local function kinds(wanted)
  local found = {}
  for _, event in ipairs(run:events()) do
    if event.kind:find(wanted) then found[#found + 1] = event.op .. " " .. event.message end
  end
  table.sort(found)
  return found
end
-- All have started; the short one and the one with the limit have ended.
local deadline = flow.now() + 60
repeat
  flow.sleep(0.005)
  assert(flow.now() < deadline, "they don't start")
until #kinds "_start$" == 5 and #kinds "^program$" == 2
check.same(kinds "_start$", {
  "WorkOp GET " .. address, "WorkOp sleep 100.25", "WorkOp sleep 100.25", "WorkOp true", "WorkerOp sleep 100.5",
})
for _, event in ipairs(run:events()) do
  if event.kind:find "_start$" then
    check.equal(event.outcome, nil)
    check.equal(event.started, nil)
    check.equal(event.url, event.kind == "request_start" and address or nil)
    check.equal(math.type(event.pid), event.kind == "program_start" and "integer" or nil)
  end
end

-- The slices of a trace: name, outcome.
local function slices()
  local found = {}
  for _, event in ipairs(flow.json.decode(run:trace()).traceEvents) do
    if event.cat == "program" or event.cat == "request" then
      found[#found + 1] = event.name .. " " .. event.args.outcome
    end
  end
  table.sort(found)
  return found
end
local open = slices()
check.same(open, { "GET running", "sleep failed", "sleep running", "sleep running", "true succeeded" })
local spans = 0
for _, span in ipairs(flow.json.decode(run:otlp()).resourceSpans[1].scopeSpans[1].spans) do
  for _, attribute in ipairs(span.attributes) do
    if attribute.key == "error.type" then check.equal(span.status.code, 2) end
    if attribute.value.stringValue == "running" and span.kind == 3 then
      spans = spans + 1
      check.equal(span.status, nil)
    end
  end
end
check.equal(spans, 3)
check.contains(run:report(), "| `sleep` | 3 |", "| `GET ")
local works = {}
for _, work in ipairs(flow.json.decode(run:timeline():match 'id="data">(.-)</script>').runs[1].works) do
  if work[3] == -1 then works[#works + 1] = ("%s %d %s"):format(work[5], work[4], work[6]) end
end
table.sort(works)
check.same(works, { "GET " .. address .. " 0 running", "sleep 100.25 0 running", "sleep 100.5 0 running" })

-- After the end of the run nothing is running.
run:cancel()
pcall(run.wait, run)
check.equal(#kinds "^program$" + #kinds "^request$", 5)
for _, slice in ipairs(slices()) do check.lacks(slice, "running") end
