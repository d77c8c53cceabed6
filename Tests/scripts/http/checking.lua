-- While a script is checked, it makes no request.
-- clock: real: a server is outside
local check, servers = require "check", require "servers"
local host = require "host"
local server <close> = servers.hostile()

for call, name in pairs {
  ["flow.http(url)"] = "flow.http", ["flow.http.get(url)"] = "flow.http.get", ['client:get "/"'] = "client.get", ['client "/"'] = "client",
} do
  local result = host.script(([[
    local flow, url = require "flow", %q
    local client = flow.http.client { base = url }
    flow.new("fetch"):add(flow.ops.HTTPOp { url = url .. "/{name}", into = "page" }):start { name = "a" }
    %s
    print "on"
  ]]):format(server:url "/echo", call), {}, { before = { "--check" } })
  check.contains(result.stdout, ("\nchecked 1 flow; $SCRIPT:4 calls '%s' (not while checking)\n"):format(name))
  check.lacks(result.stdout, "\non\n")
  check.equal(result.stderr, "")
  check.equal(result.status, 0)
end
check.equal(server:state().accepted, 1)
