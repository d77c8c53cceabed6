-- With `progress` the op of a request shows how much of a body has come or was sent.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local run = flow.op("FetchOp", function()
  return flow.http { url = server:url("/size", { size = 3 << 20 }), progress = true }
end):run()
check.equal(run.ok, true, tostring(run.error))
local last
for _, event in ipairs(run:events()) do
  if event.kind == "progress" then
    if last then check.equal(event.done >= last.done, true) end
    last = event
  end
end
check.equal(last.done, 3 << 20)
check.equal(last.total, 3 << 20)

-- Without a length there is no total; outside an op there is nothing to show.
run = flow.op("FetchOp", function()
  return flow.http { url = server:url("/size", { size = 1 << 20, chunked = 1 }), progress = true }
end):run()
check.equal(run.ok, true, tostring(run.error))
last = nil
for _, event in ipairs(run:events()) do
  if event.kind == "progress" then last = event end
end
check.equal(last.done, 1 << 20)
check.equal(last.total, nil)
check.equal(#flow.http { url = server:url("/size", { size = 100000 }), progress = true }:await().body, 100000)
-- Sent bytes count, too.
run = flow.op("SendOp", function()
  return flow.http { url = server:url "/echo", body = ("x"):rep(3 << 20), progress = true }
end):run()
last = 0
for _, event in ipairs(run:events()) do
  if event.kind == "progress" then last = math.max(last, event.done) end
end
check.equal(last >= 3 << 20, true, "bytes " .. last)

-- A download that is continued, by several ranges: the whole file counts.
local folder <close> = servers.folder()
local request = {
  url = server:url("/file", { of = "part", id = servers.id(), size = 300000, cut = 100000, most = 70000 }),
  save = folder .. "/part", resume = true, timeout = 60,
}
check.raises(function() flow.http(request):await() end, "200000 bytes remaining")
local done = 100000
request.progress = function(bytes, total)
  check.equal(bytes >= done, true, bytes .. " after " .. done)
  check.equal(total, 300000)
  done = bytes
end
check.equal(flow.http(request):await().status, 206)
check.equal(done, 300000)

-- An error of the function ends a stream, too, whose task has succeeded with its header.
local stream = flow.http { url = server:url("/size", { size = 8 << 20 }), stream = true, progress = function(done)
  if done > 1 << 20 then error "enough" end
end }:await()
local got = 0
local ok, problem = pcall(function() for chunk in stream:chunks() do got = got + #chunk end end)
check.equal(ok, false)
check.contains(problem, "enough")
check.equal(got < 8 << 20, true, "bytes " .. got)

-- A function that refers to its own task keeps nothing when the task has ended.
local kept = setmetatable({}, { __mode = "v" })
local calls = 0
local function fetch()
  local task
  task = flow.http { url = server:url("/size", { size = 1 << 20 }), progress = function()
    calls = calls + (task and 1 or 0)
  end }
  kept[1] = task
  check.equal(#task:await().body, 1 << 20)
end
fetch()
check.equal(calls > 0, true)
flow.sleep(0)
for _ = 1, 3 do collectgarbage() end
check.equal(kept[1], nil)
