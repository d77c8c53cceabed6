-- While a script is checked, it makes no request.
-- clock: real: a server is outside
local check, servers = require "check", require "servers"
local host = require "host"
local server <close> = servers.hostile()

local result = host.script(([[
  local flow = require "flow"
  local client = flow.http.client { base = %q }
  for _, make in ipairs { function() flow.http(%q) end, function() flow.http.get(%q) end,
    function() client:get "/" end, function() client "/" end } do
    print(select(2, pcall(make)))
  end
  flow.new("fetch"):add(flow.ops.HTTPOp { url = %q .. "/{name}", into = "page" }):start { name = "a" }
]]):format(server:url "/echo", server:url "/echo", server:url "/echo", server:url "/echo"), {}, { before = { "--check" } })
check.equal(select(2, result.stdout:gsub("%(not while checking%)", "")), 4)
check.equal(result.stderr, "")
check.equal(result.status, 0)
check.equal(server:state().accepted, 1)
