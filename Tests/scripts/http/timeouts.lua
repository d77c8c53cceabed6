-- Each of the three timeouts ends a request with an error of kind `timeout` that names it.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local function timed_out(name, seconds, request)
  request[name] = seconds
  local from = flow.now()
  local task = flow.http(request)
  task:wait()
  check.equal(task.state, "failed", name)
  local e = task.error
  check.equal(e.kind, "timeout", name)
  check.contains(e.message, name, ("%g"):format(seconds), "127.0.0.1")
  check.equal(flow.now() - from >= seconds * 0.9, true, name)
  check.equal(flow.now() - from < seconds + 10, true, name)
  return e
end

-- The whole request, whatever it does meanwhile.
check.equal(timed_out("timeout", 0.1, { url = server:url "/never" }).sent, true)
timed_out("timeout", 0.1, { url = server:url("/drip", { pause = 0.005 }) })
timed_out("timeout", 0.1, { url = server:url("/drip", { pause = 0.005, head = 1 }) })
timed_out("timeout", 0.1, { url = server:url "/endless", max_bytes = 1 << 50, stream = nil, save = "/dev/null" })
timed_out("timeout", 0.1, { url = server:url "/unread", body = ("x"):rep(50 << 20) })
check.equal(timed_out("timeout", 0.1, { url = server:url("", nil, "full") }).sent, false)
timed_out("timeout", 0.1, { url = server:url("/slow", { delay = 5 }) })

-- Connecting.
local e = timed_out("connect_timeout", 0.1, { url = server:url("", nil, "full") })
check.equal(e.sent, false)
check.equal(e.phase, "connect")
e = timed_out("connect_timeout", 0.1, { url = ("https://127.0.0.1:%d/"):format(server.silent) })
check.equal(e.sent, false)
check.equal(e.phase, "tls")
check.equal(flow.http { url = server:url("/slow", { delay = 0.2 }), connect_timeout = 0.1 }:await().body, "slow")

-- No byte moved: before the head, within it, within the body, of the request's body.
timed_out("idle_timeout", 0.2, { url = server:url "/never" })
timed_out("idle_timeout", 0.2, { url = server:url("/never", { head = 1 }) })
timed_out("idle_timeout", 0.2, { url = server:url("/never", { part = "some" }) })
timed_out("idle_timeout", 0.2, { url = server:url "/unread", body = ("x"):rep(50 << 20) })
check.equal(flow.http { url = server:url("/raw", { data = "HTTP/1.1 200 OK\r\n\r\nslowly", pause = 0.02, size = 1 }),
  idle_timeout = 10 }:await().body, "slowly")

-- None of its own: the op's timeout, and the shorter of the two.
local run = flow.op("FetchOp", { timeout = 0.1, run = function() return flow.http(server:url "/never") end }):run()
check.equal(run.error.kind, "timeout")
check.contains(run:summary(), "timedOut after 0.1s")
run = flow.op("FetchOp", { timeout = 30, run = function()
  return flow.http { url = server:url "/never", timeout = 0.1 }
end }):run()
check.equal(run.error.kind, "timeout")
check.contains(run.error.message, "timeout", "0.1")

-- Times are for one request each.
for _ = 1, 4 do
  check.equal(flow.http { url = server:url("/slow", { delay = 0.1 }), timeout = 5 }:await().body, "slow")
end
