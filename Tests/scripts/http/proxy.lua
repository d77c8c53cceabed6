-- Requests go through the proxy that they, their client or the environment name, also as a tunnel for TLS.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local nginx <close> = servers.nginx()
local proxy <close> = servers.proxy()
local through, asking = "http://127.0.0.1:" .. proxy.open, "127.0.0.1:" .. proxy.asking

local seen = flow.http { url = server:url "/echo", proxy = through }:await():json()
check.contains(seen.headers.via, "open")
check.equal(flow.http(server:url "/echo"):await():json().headers.via, nil)
-- A tunnel: the certificate is the server's, and the proxy reads nothing.
local res = flow.http { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem, proxy = through }:await()
check.contains(res.body, "HTTP/2.0")
local task = flow.http { url = nginx:url("/who", nil, "https"), proxy = through }
task:wait()
check.equal(task.error.phase, "tls")

-- One that asks for a password.
seen = flow.http { url = server:url "/echo", proxy = "http://user:password@" .. asking }:await():json()
check.equal(seen.headers["proxy-authorization"], nil)
check.equal(seen.headers.via ~= nil, true)
res = flow.http { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem, proxy = "http://user:password@" .. asking }:await()
check.equal(res.status, 200)
-- Refused: by a status for a plain request; a tunnel isn't built, so nothing was sent.
task = flow.http { url = server:url "/echo", proxy = "http://" .. asking }
task:wait()
check.equal(task.error.kind, "http")
check.equal(task.error.status, 407)
task = flow.http { url = nginx:url("/who", nil, "https"), ca = nginx.ca_pem, proxy = "http://user:wrong-word@" .. asking }
task:wait()
check.equal(task.error.kind, "network")
check.equal(task.error.phase, "connect")
check.equal(task.error.sent, false)
check.contains(task.error.message, "proxy")
check.lacks(task.error.message, "wrong-word")
-- One that isn't there.
task = flow.http { url = server:url "/echo", proxy = server:url("", nil, "refused") }
task:wait()
check.equal(task.error.kind, "network")
check.equal(task.error.phase, "connect")
check.equal(task.error.sent, false)

-- The environment.
local host = require "host"
local function via(environment, request)
  local result = host.script(([[
    local flow = require "flow"
    print(flow.http(%s):await():json().headers.via ~= nil)
  ]]):format(request or ("%q"):format(server:url "/echo")), {}, { environment = environment })
  check.equal(result.stderr, "")
  return result.stdout
end
check.equal(via { http_proxy = through }, "true\n")
check.equal(via { HTTP_PROXY = through }, "true\n")
check.equal(via { all_proxy = through }, "true\n")
check.equal(via { http_proxy = through, no_proxy = "127.0.0.1" }, "false\n")
check.equal(via { http_proxy = through, NO_PROXY = "*" }, "false\n")
check.equal(via({ http_proxy = through }, ("{ url = %q, proxy = false }"):format(server:url "/echo")), "false\n")
