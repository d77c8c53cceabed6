-- Every view shows runs whose times a virtual clock has moved beyond what fits into a number: no view ends the process.
local host, check, flow, json = require "host", require "check", require "flow", require "flow.json"
local fs, scratch = require "flow.fs", require "scratch"
local folder, _ <close> = scratch.folder()

local script = [[
  local flow = require "flow"
  local far = ...
  far = tonumber(far)
  local SleepOp = flow.op("SleepOp", { primary_input = "x", run = function(ctx) flow.sleep(far / (ctx.index or 1)) end })
  local RetryOp = flow.op("RetryOp", { primary_input = "x", retry = { attempts = 3, delay = far, jitter = 0 }, timeout = far,
    run = function(ctx)
    if ctx.attempt < 3 then ctx:fail "refused" end
    flow.sleep(far)
  end })
  local InnerOp = flow.op("InnerOp", function() flow.new("inner"):add(SleepOp):run() flow.sleep(far) end)
  local function group(op) return flow.new("group"):data { list = { 1, 2, 3 } }:add_grouped(op, { input = "list" }) end
  local first = group(SleepOp):start()
  first:await()
  -- Whether a timeout at the end of all time comes before the end of a sleep there doesn't matter.
  pcall(function() group(RetryOp):start():await() end)
  local last = flow.new("last"):add(InnerOp):add_parallel(RetryOp, SleepOp):start()
  pcall(last.await, last)
  for _, run in ipairs { first, last } do
    assert(#run:trace() > 0 and #run:timeline() > 0 and #run:report() > 0 and #run:otlp() > 0 and #run:dot() > 0)
    assert(#run:events() > 0 and #run:summary() > 0 and run.duration >= 0)
  end
  print "done"
]]
local views = { "report", "timeline", "trace", "otlp", "events" }
local function path(view) return ("%s/%s.json"):format(folder, view) end
for _, far in ipairs { "8.5e9", "9e9", "1e10", "1e300", "1e-300" } do
  local options = { "--virtual-clock", "--progress=plain", "--summary=json:" .. folder .. "/summary.json" }
  for _, view in ipairs(views) do options[#options + 1] = "--" .. view .. "=" .. path(view) end
  local result = host.script(script, { far }, { before = options })
  check.equal(result.status, 0, far .. ": " .. result.stderr)
  check.equal(result.stdout, "done\n")
  check.equal(#json.read(path "trace").traceEvents > 0, true)
  for _, span in ipairs(json.read(path "otlp").resourceSpans[1].scopeSpans[1].spans) do
    local start, finish = math.tointeger(span.startTimeUnixNano), math.tointeger(span.endTimeUnixNano)
    assert(start and finish and start <= finish and start > 0, far)
  end
  check.contains(fs.read(path "report"), "SleepOp")
  check.contains(fs.read(path "timeline"), "SleepOp")
end

-- A time that fits is shown as it was.
local run = flow.op("SleepOp", function() flow.sleep(1e9) end):run()
check.equal(json.decode(run:trace()).traceEvents[1].ph, "M")
check.contains(run:report(), "SleepOp")
