-- A server of this computer announces the others of its cluster: a connection without TLS isn't made to them.
-- clock: real: other processes join the servers
local check = require "check"
local flow = require "flow"
local http = require "flow.http"
local remote = require "remote"

local ports, pages = remote.free_ports(2), remote.free_ports(2)
local function server(k)
  return remote.server { config = ([[
    server_name: queue%d
    http: "127.0.0.1:%d"
    cluster { name: test, listen: "127.0.0.1:%d", routes: [ "nats://127.0.0.1:%d" ] }
  ]]):format(k, pages[k], ports[k], ports[3 - k]) }
end
local one <close> = server(1)
local two <close> = server(2)

local function get(path) return http.get(("http://127.0.0.1:%d/%s"):format(pages[2], path)):await():json() end
for _ = 1, 3000 do
  if get("jsz").meta_cluster.leader then break end
  flow.sleep(0.01)
end
one:join "m1"
-- The clients of the first one know the second one by now.
check.equal(#get("routez").routes > 0, true)
check.equal(get("varz").total_connections, 0)
one:kill()
-- The library tries again after a quarter of a second.
flow.sleep(1.5)
check.equal(get("varz").total_connections, 0)

