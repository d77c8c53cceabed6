-- Certificates are checked against the system's or the request's authority; HTTP/2 shares one connection.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local nginx <close> = servers.nginx()

local function who(request)
  local connection, count, protocol, subject = flow.http(request):await().body:match "(%d+) (%d+) (%S+) (.*)\n"
  return { connection = connection, count = tonumber(count), protocol = protocol, subject = subject }
end

-- One that nobody vouches for isn't trusted; nothing was sent, and it isn't tried again.
local function refused(request, ...)
  local attempts = 0
  local run = flow.op("FetchOp", { retry = 3, run = function()
    attempts = attempts + 1
    return flow.http(request)
  end }):run()
  check.equal(run.error.kind, "network")
  check.equal(run.error.phase, "tls")
  check.equal(run.error.sent, false)
  check.equal(attempts, 1)
  check.contains(run.error.message, "127.0.0.1", ...)
  return run.error
end
refused({ url = nginx:url("/who", nil, "https") }, "certificate")
refused({ url = nginx:url("/who", nil, "wrong"), ca = nginx.ca_pem }, "127.0.0.1")
refused({ url = nginx:url("/who", nil, "expired"), ca = nginx.ca_pem }, "expired")
refused({ url = nginx:url("/who", nil, "https"), ca = nginx.client_pem }, "certificate")
refused({ url = nginx:url("/who", nil, "https"), ca = "/no/such.pem" }, "/no/such.pem")
check.equal(who { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem }.subject, "")
check.equal(who { url = nginx:url("/who", nil, "wrong"), insecure = true }.protocol, "HTTP/1.1")
check.equal(who { url = ("https://localhost:%d/who"):format(nginx.https), ca = nginx.ca_pem }.protocol, "HTTP/2.0")
-- A connection that wasn't checked isn't used by a request that asks for a check.
refused({ url = nginx:url("/who", nil, "wrong"), ca = nginx.ca_pem })
refused({ url = nginx:url("/who", nil, "https") }, "certificate")

-- The client's own certificate.
check.equal(flow.http { url = nginx:url("/who", nil, "client"), ca = nginx.ca_pem, check = false }:await().status, 400)
check.equal(who { url = nginx:url("/who", nil, "client"), ca = nginx.ca_pem, cert = nginx.client_pem,
  key = nginx.client_key }.subject, "CN=client")
check.equal(flow.http { url = nginx:url("/who", nil, "client"), ca = nginx.ca_pem, check = false }:await().status, 400)
-- A client's certificate is for its server only.
local client = flow.http.client {
  base = nginx:url("/", nil, "client"), ca = nginx.ca_pem, cert = nginx.client_pem, key = nginx.client_key, check = false,
}
check.contains(client("/who"):await().body, "CN=client")
local elsewhere = flow.http.client {
  base = nginx:url "/", ca = nginx.ca_pem, cert = nginx.client_pem, key = nginx.client_key, check = false,
}
check.equal(elsewhere(nginx:url("/who", nil, "client")):await().status, 400)

-- The authority of the environment.
local host = require "host"
local result = host.script(([[
  print(require "flow".http(%q):await().status)
]]):format(nginx:url("/who", nil, "https")), {}, { environment = { SSL_CERT_FILE = nginx.ca_pem } })
check.equal(result.stderr, "")
check.equal(result.stdout, "200\n")

-- Versions.
check.equal(who { url = nginx:url "/who" }.protocol, "HTTP/1.1")
check.equal(who { url = nginx:url("/who", nil, "https1"), ca = nginx.ca_pem }.protocol, "HTTP/1.1")
check.equal(who { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem }.protocol, "HTTP/2.0")
check.equal(who { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem, http = "1.1" }.protocol, "HTTP/1.1")
check.equal(who { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem, http = "2" }.protocol, "HTTP/2.0")

-- 64 at once over HTTP/2 go over one connection, which a cancel doesn't close.
local tasks, connections, distinct = {}, {}, 0
for i = 1, 64 do tasks[i] = flow.http { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem } end
for _, task in ipairs(tasks) do
  local connection = task:await().body:match "%d+"
  if not connections[connection] then distinct = distinct + 1 end
  connections[connection] = true
end
check.equal(distinct, 1)
local slow = flow.http { url = nginx:url("/slow", nil, "https"), ca = nginx.ca_pem }
flow.sleep(0.02)
slow:cancel()
check.equal(connections[who { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem }.connection], true)

-- Bodies of all sizes over TLS, sent and received.
for _, name in ipairs { "https", "https1" } do
  local res = flow.http { url = nginx:url("/big", nil, name), ca = nginx.ca_pem }:await()
  check.equal(res.body == ("\0"):rep(1 << 20), true)
  check.equal(flow.http { url = nginx:url("/gzip", nil, name), ca = nginx.ca_pem }:await().body, ("s"):rep(1024))
  local url = nginx:url("/put/" .. name, nil, name)
  res = flow.http { url = url, ca = nginx.ca_pem, method = "PUT", body = ("x"):rep(3 << 20) }:await()
  check.equal(res.status, 201)
  check.equal(flow.http { url = url, ca = nginx.ca_pem }:await().body == ("x"):rep(3 << 20), true)
end

-- A session that is reset within a body.
for _ = 1, 5 do
  local task = flow.http { url = nginx:url("/", nil, "resetting"), ca = nginx.ca_pem, body = ("x"):rep(100000) }
  task:wait()
  check.equal(task.error.kind, "network")
  check.equal(task.error.sent, true)
end
