-- Compressed bodies are decompressed, and `max_bytes` counts what comes out.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()

for _, encoding in ipairs { "gzip", "deflate", "bare" } do
  check.equal(flow.http(server:url("/compressed", { size = 5000, encoding = encoding })):await().body, ("x"):rep(5000))
end
check.equal(flow.http(server:url("/compressed", { size = 0 })):await().body, "")

-- A body in memory is limited, to 64 MiB unless the request says otherwise.
local function refused(request, size)
  local task = flow.http(request)
  task:wait()
  check.equal(task.state, "failed")
  local e = task.error
  check.equal(e.kind, "http")
  check.equal(e.status, 200)
  check.contains(e.message, "max_bytes", size)
  return e
end
refused({ url = server:url("/compressed", { size = 1 << 30 }), max_bytes = 1 << 20 }, "1048576")
refused({ url = server:url("/endless"), max_bytes = 100000 }, "100000")
refused({ url = server:url("/size", { size = 1000 }), max_bytes = 999 }, "999")
check.equal(#flow.http { url = server:url("/size", { size = 1000 }), max_bytes = 1000 }:await().body, 1000)
check.equal(#flow.http { url = server:url("/compressed", { size = 1000 }), max_bytes = 1000 }:await().body, 1000)
refused({ url = server:url("/compressed", { size = 65 << 20 }) }, "67108864")

-- Files and streams have no limit unless one is asked for.
local path = folder .. "/bomb"
flow.http { url = server:url("/compressed", { size = 70 << 20 }), save = path }:await()
local file = assert(io.open(path))
check.equal(file:seek "end", 70 << 20)
file:close()
refused({ url = server:url("/compressed", { size = 1 << 20 }), save = path .. "2", max_bytes = 1000 }, "1000")
check.equal(io.open(path .. "2"), nil)
