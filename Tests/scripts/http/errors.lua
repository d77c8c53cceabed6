-- A request that fails says what happened: kind, phase, whether the server may have acted, status, body and address.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()

local function problem(request)
  local task = flow.http(request)
  task:wait()
  check.equal(task.state, "failed")
  return task.error
end

-- A status from 400 on.
local e = problem(server:url("/reply", { status = 404, body = "no such page", header = { "X-Why: gone" } }))
check.equal(e.kind, "http")
check.equal(e.code, 404)
check.equal(e.status, 404)
check.equal(e.body, "no such page")
check.equal(e.headers["x-why"], "gone")
check.equal(e.retry_after, nil)
check.contains(e.message, "GET http://127.0.0.1:" .. server.http .. "/reply", "404")
check.equal(#problem(server:raw("HTTP/1.1 500 X\r\nContent-Length: 8000\r\n\r\n" .. ("e"):rep(8000))).body, 4096)
check.equal(problem(server:url("/reply", { status = 500 })).body, "")
for _, status in ipairs { 400, 401, 403, 407, 408, 418, 451, 499, 500, 503, 599, 600, 999 } do
  check.equal(problem(server:url("/reply", { status = status })).status, status)
end

-- Retry-After: seconds, a date, nonsense, and times that nobody waits for.
local function retry_after(text)
  return problem(server:url("/reply", { status = 503, header = "Retry-After: " .. text })).retry_after
end
check.equal(retry_after "7", 7.0)
check.equal(retry_after "0", 0.0)
local date = os.date("!%a, %d %b %Y %H:%M:%S GMT", os.time() + 100)
local wait = retry_after(date)
check.equal(wait > 60 and wait <= 100, true)
check.equal(retry_after "Mon, 02 Jan 2006 15:04:05 GMT" or 0.0, 0.0)
for _, text in ipairs { "soon", "-5", "", "1e5", "nan", "0x10", "99999999999999999999999" } do
  local seconds = retry_after(text)
  check.equal(seconds == nil or seconds >= 0 and seconds < 1e12, true, text)
end
check.equal(retry_after "soon", nil)

-- Nothing that was sent: the server hasn't acted.
e = problem(server:url("/", nil, "refused"))
check.equal(e.kind, "network")
check.equal(e.phase, "connect")
check.equal(e.sent, false)
check.equal(math.type(e.code), "integer")
check.equal(e.status, nil)
check.contains(e.message, "GET http://127.0.0.1:" .. server.refused .. "/", "efused")
-- A name that no name server is asked for: a part of it is longer than 63 letters.
local name = ("a"):rep(64) .. ".invalid"
e = problem("http://" .. name .. "/")
check.equal(e.kind, "network")
check.equal(e.phase, "resolve")
check.equal(e.sent, false)
check.contains(e.message, name)
-- No TLS there. Whether the server replies depends on the random bytes of the greeting: it waits for a line.
e = problem { url = ("https://127.0.0.1:%d/"):format(server.http), connect_timeout = 2 }
check.equal(e.kind == "network" or e.kind == "timeout", true, e.kind)
check.equal(e.phase, "tls")
check.equal(e.sent, false)

-- A server that resets connections at once: on any machine the request may have been written before.
e = problem(server:url("/", nil, "resetting"))
check.equal(e.kind, "network")
check.equal(({ connect = true, send = true, wait = true, receive = true })[e.phase], true)

-- Files that can't be read or written.
e = problem { url = server:url "/echo", upload = folder .. "/none" }
check.contains(e.message, "none", "No such file")
e = problem { url = server:url "/echo", files = { a = { path = folder .. "/none" } } }
check.contains(e.message, "none", "No such file")
e = problem { url = server:url "/echo", save = folder .. "/none/out" }
check.contains(e.message, "none/out", "No such file")
e = problem { url = server:url("/size", { size = 1 << 20 }), save = "/dev/full/out" }
check.contains(e.message, "/dev/full/out")

-- Addresses that aren't any, and schemes that aren't HTTP.
for _, url in ipairs { "", "http://", "no scheme", "file:///etc/passwd", "ftp://127.0.0.1/", "http://[::1", "http://a b/",
  "http://127.0.0.1:99999/" } do
  local ok, raised = pcall(function() return flow.http(url):await() end)
  check.equal(ok, false, url)
  check.equal(raised.kind == "usage" or raised.kind == "network", true, url)
end

-- An uncaught error says where the request was made, as others do.
local host = require "host"
local result = host.script(([[
  local flow = require "flow"

  flow.http(%q):await()
]]):format(server:url("/reply", { status = 404 })))
check.equal(result.status, 1)
check.contains(result.stderr, "404", "$SCRIPT:3:")
-- One that nobody observed is reported.
result = host.script(([[
  local task = require "flow".http(%q)
  task:wait()
]]):format(server:url("/reply", { status = 404 })))
check.equal(result.status, 1)
check.contains(result.stderr, "404")

-- In an op it is the op's error, with its fields.
local run = flow.op("FetchOp", function()
  return flow.http(server:url("/reply", { status = 503, body = "busy", header = "Retry-After: 3" }))
end):run()
check.equal(run.error.kind, "http")
check.equal(run.error.status, 503)
check.equal(run.error.op, "FetchOp")
check.equal(run.error.retry_after, 3.0)
check.contains(tostring(run.error), "[FetchOp]")
check.contains(run:summary(), "[FetchOp] DidFinish: withError: ")
