-- Ops and continuations in workers make requests as those of the main thread do, each with connections of its own.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()

local url = server:url "/reply?body="
local FetchOp = flow.op("FetchOp", { thread = "worker", needs = { n = "integer" }, gives = { body = "string" },
  run = function(ctx)
    local flow = require "flow"
    local res = flow.http { url = url .. ctx:get "n", headers = { ["X-A"] = "1" } }:await()
    ctx:set("body", res.body .. res.status .. res.headers["content-length"])
  end })
local list, expected = {}, {}
for i = 1, 40 do list[i], expected[i] = i, ("%d200%d"):format(i, #tostring(i)) end
local run = flow.new("all"):data { list = list }
  :add_grouped(FetchOp, { input = "list", output = "bodies", max_concurrent = 8 }):run()
check.equal(run.ok, true, tostring(run.error))
check.same(run.data.bodies, expected)
check.contains(run:summary(), "[FetchOp #7] GET http://127.0.0.1:" .. server.http .. "/reply?body=<redacted> -> 200 in ")

-- Errors come back with their fields.
local status = server:url("/reply", { status = 503, body = "busy", header = "Retry-After: 3" })
run = flow.op("FailOp", { thread = "worker", run = function() return require "flow".http(status) end }):run()
check.equal(run.error.kind, "http")
check.equal(run.error.status, 503)
check.equal(run.error.retry_after, 3.0)
local refused = server:url("", nil, "refused")
run = flow.op("FailOp", { thread = "worker", run = function() require "flow".http(refused):await() end }):run()
check.equal(run.error.kind, "network")
check.equal(run.error.phase, "connect")
check.equal(run.error.sent, false)

-- A stop of the op ends the transfer.
local id = servers.id()
local never = server:url("/never", { id = id })
run = flow.op("NeverOp", { thread = "worker", timeout = 0.1, run = function()
  require "flow".http(never):await()
end }):run()
check.equal(run.error.kind, "timeout")
servers.eventually(function() return server:state(id).closed end, "the end of the connection")
run = flow.op("NeverOp", { thread = "worker", run = function() require "flow".http(never):await() end }):start()
servers.eventually(function() return #server:requests(id) == 2 end, "the request")
run:cancel()
run:wait()
check.equal(run.state, "cancelled")

-- Streams, clients and events work there.
local lines = server:url("/lines", { count = 100 })
run = flow.op("StreamOp", { thread = "worker", run = function(ctx)
  local length = 0
  for chunk in require "flow".http { url = lines, stream = true }:await():chunks() do length = length + #chunk end
  local client = require "flow".http.client { base = lines }
  ctx:set("length", length)
end }):run()
check.equal(run.data.length, 292)

-- A continuation.
local task = flow.resolved(server:url("/reply", { body = "there" })):next_on_success("worker", function(address)
  return require "flow".http(address):await().body
end)
check.equal(task:await(), "there")
