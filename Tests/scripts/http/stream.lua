-- A streamed body comes in chunks as it arrives, and the transfer pauses while nobody reads.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local function stream(url) return flow.http { url = url, stream = true }:await() end

-- All of it, in order; the response is there before its body.
local parts = {}
local res = stream(server:url("/lines", { count = 1000 }))
check.equal(res.status, 200)
check.usage(function() return res.body end, "body", "chunks")
for chunk in res:chunks() do parts[#parts + 1] = chunk end
local expected = {}
for i = 1, 1000 do expected[i] = i .. "\n" end
check.equal(table.concat(parts), table.concat(expected))
check.equal(res:chunks()(), nil)

-- Each piece as it comes: the server waits between them.
local times = {}
for chunk in stream(server:raw("HTTP/1.1 200 OK\r\n\r\nabc", { size = 1, pause = 0.02 })):chunks() do
  times[#times + 1] = flow.now()
end
check.equal(#times >= 2, true)
check.equal(times[#times] - times[1] >= 0.01, true)

-- An empty body has no chunks; a compressed one is decompressed.
for chunk in stream(server:url "/reply"):chunks() do error("a chunk: " .. chunk) end
local length = 0
for chunk in stream(server:url("/compressed", { size = 3 << 20 })):chunks() do length = length + #chunk end
check.equal(length, 3 << 20)

-- The server can't send more than buffers hold while the script is busy with something else.
local id = servers.id()
res = stream(server:url("/size", { size = 1 << 30, id = id }))
local iterate, state, control = res:chunks()
local first = iterate(state, control)
check.equal(#first > 0, true)
local before
servers.eventually(function()
  local now = server:state(id).sent
  local still = now == before
  before = now
  if not still then flow.sleep(0.05) end
  return still
end, "a pause of the transfer")
check.equal(before < 64 << 20, true, ("%d bytes were sent"):format(before))
-- It continues when the script reads again.
for _ = 1, 200 do iterate(state, control) end
-- One that is left ends its transfer when it is closed or collected.
res:close()
servers.eventually(function() return server:state().open == 0 end, "the end of the connection")
do
  local closed <close> = stream(server:url("/endless"))
end
servers.eventually(function() return server:state().open == 0 end, "the end of the connection")
for chunk in stream(server:url("/endless")):chunks() do break end
servers.eventually(function() return server:state().open == 0 end, "the end of the connection after a break")

-- A failure within the body is raised at the wait for the next chunk.
for _, url in ipairs {
  server:url("/truncated", { declared = 1000, sent = 100 }), server:url("/reset", { phase = "body" }),
} do
  local count = 0
  local e = check.raises(function()
    for chunk in stream(url):chunks() do count = count + #chunk end
  end, "127.0.0.1")
  check.equal(e.kind, "network")
  check.equal(e.phase, "receive")
  check.equal(count == 100 or count == 4 or count == 0, true)
end
local e = check.raises(function()
  for _ in flow.http { url = server:url "/drip", stream = true, timeout = 0.1 }:await():chunks() do end
end, "timeout")
check.equal(e.kind, "timeout")
-- A status that fails does so before there is a stream, with the beginning of its body.
local task = flow.http { url = server:url("/reply", { status = 500, body = "sorry" }), stream = true }
task:wait()
check.equal(task.error.status, 500)
check.equal(task.error.body, "sorry")

-- The end of the op, its timeout and cancel end a stream.
local run = flow.op("ReadOp", { timeout = 0.1, run = function()
  for _ in stream(server:url "/drip"):chunks() do end
end }):run()
check.equal(run.error.kind, "timeout")
run = flow.op("LeaveOp", function() stream(server:url "/endless") end):run()
check.equal(run.ok, true)
run = flow.op("SlowOp", function()
  for _ in stream(server:url "/drip"):chunks() do end
end):start()
flow.sleep(0.02)
run:cancel()
run:wait()
check.equal(run.state, "cancelled")
servers.eventually(function() return server:state().open == 0 end, "the end of all connections")

-- Two at once, each at its own pace.
local a, b = stream(server:url("/lines", { count = 100 })), stream(server:url("/lines", { count = 100 }))
local texts = { "", "" }
for chunk in a:chunks() do
  texts[1] = texts[1] .. chunk
  flow.sleep(0)
end
for chunk in b:chunks() do texts[2] = texts[2] .. chunk end
check.equal(texts[1], texts[2])

-- One coroutine at a time waits for a body, whichever iterator it uses.
res = stream(server:url("/drip", { bytes = 300, pause = 0.002 }))
local got = 0
local reader = flow.spawn(function()
  for chunk in res:chunks() do got = got + #chunk end
end)
check.usage(function() res:chunks()() end, "another coroutine is waiting")
reader:await()
check.equal(got, 300)
-- Bytes that came for a wait that was cancelled are for the next one.
res = stream(server:url("/drip", { bytes = 300, pause = 0.002 }))
iterate = res:chunks()
got = 0
for i = 1, 400 do
  local one = flow.spawn(function() got = got + #(iterate() or "") end)
  for _ = 1, i % 7 do flow.sleep(0) end
  one:cancel()
  one:wait()
end
local rest = iterate()
while rest do
  got = got + #rest
  rest = iterate()
end
check.equal(got, 300)

-- A body that nobody reads has a timeout, too, once somebody does; until then it keeps no script.
res = flow.http { url = server:url("/size", { size = 1 << 30 }), stream = true, timeout = 0.2 }:await()
flow.sleep(0.3)
length = 0
check.equal(check.raises(function()
  for chunk in res:chunks() do length = length + #chunk end
end, "timeout").kind, "timeout")
-- Its time is over at the first read: only what has been received already is left.
check.equal(length > 0 and length < 512 << 10, true, ("%d bytes were read"):format(length))
local script = require "host".script(([[
  res = require "flow".http { url = %q, stream = true, timeout = 3600 }:await()
  require "flow".sleep(0.1)
  print "read no more"
]]):format(server:url("/size", { size = 1 << 30 })))
check.equal(script.status, 0)
check.equal(script.stdout, "read no more\n")
