-- A request that is cancelled ends at once, in every phase, and leaves no descriptor.
-- clock: real: a server is outside
local flow, check, servers = require "flow", require "check", require "servers"
local server <close> = servers.hostile()
local folder <close> = servers.folder()
local nginx <close> = servers.nginx()
local proxy <close> = servers.proxy()

local path = folder .. "/upload"
local file = assert(io.open(path, "w"))
file:write(("u"):rep(1 << 20))
file:close()

local never = server:url "/never"
local phases = {
  start = { url = never },
  connect = { url = server:url("", nil, "full") },
  tls = { url = ("https://127.0.0.1:%d/"):format(server.silent) },
  unread = { url = server:url("/unread", { stall = 1 }), body = ("x"):rep(20 << 20) },
  upload = { url = server:url("/unread", { stall = 1 }), upload = path, method = "PUT" },
  files = { url = server:url("/unread", { stall = 1 }), files = { a = { path = path } } },
  wait = { url = never },
  silent = { url = server:url("", nil, "silent") },
  head = { url = server:url("/drip", { head = 1, pause = 0.001 }) },
  body = { url = server:url("/never", { part = "part" }) },
  drip = { url = server:url("/drip", { pause = 0.001 }) },
  endless = { url = server:url("/endless", { rate = 10 << 20 }), max_bytes = 1 << 40 },
  save = { url = server:url("/endless", { rate = 10 << 20 }), save = folder .. "/out" },
  bomb = { url = server:url("/compressed", { size = 1 << 40 }), save = "/dev/null" },
  proxy = { url = server:url("/slow", { delay = 1 }), proxy = "http://127.0.0.1:" .. proxy.open },
  tunnel = { url = nginx:url("/slow", nil, "https"), proxy = "http://127.0.0.1:" .. proxy.open, ca = nginx.ca_pem },
  http2 = { url = nginx:url("/slow", nil, "https"), ca = nginx.ca_pem },
  http1 = { url = nginx:url("/slow", nil, "https1"), ca = nginx.ca_pem },
}
flow.http(server:url "/reply"):await()
local before = servers.descriptors()

local longest = 0
local function cancelled(name, request, delay)
  local task = flow.http(request)
  if delay then flow.sleep(delay) end
  if task.state ~= "pending" then error(name .. ": " .. tostring(task.error), 0) end
  local from = flow.now()
  task:cancel "enough"
  task:wait()
  longest = math.max(longest, flow.now() - from)
  check.equal(task.state, "cancelled", name)
  check.equal(task.error.kind, "cancelled", name)
  check.equal(task.error.message, "cancelled: enough", name)
end
for name, request in pairs(phases) do
  cancelled(name, request)
  cancelled(name, request, 0.001)
  cancelled(name, request, 0.03)
end
if longest > 0.5 then error("a cancel took " .. longest) end

-- Between two attempts, between redirects, while a turn of a client is waited for.
local run = flow.op("RetryOp", { retry = { attempts = 100, delay = 0.001 }, run = function()
  return flow.http(server:url("/", nil, "refused"))
end }):start()
flow.sleep(0.01)
run:cancel()
run:wait()
check.equal(run.state, "cancelled")

-- By a timeout of the op, by the failure of another item, by the end of the run.
run = flow.op("TimeoutOp", { timeout = 0.02, run = function() return flow.http(never) end }):run()
check.equal(run.error.kind, "timeout")
local ItemOp = flow.op("ItemOp", { needs = { i = "integer" }, run = function(ctx)
  if ctx:get "i" == 3 then
    flow.sleep(0.01)
    ctx:fail "no"
  end
  return flow.http(never)
end })
run = flow.new("group"):data { list = { 1, 2, 3 } }:add_grouped(ItemOp, { input = "list" }):run()
check.equal(run.error.message, "no")
local left
run = flow.op("LeaveOp", function() left = flow.http(never) end):run()
check.equal(run.ok, true)
left:wait()
check.equal(left.state, "cancelled")
do
  local closed <close> = flow.http(never)
  left = closed
end
check.equal(left.state, "cancelled")

-- One that is settled isn't changed.
local done = flow.http(server:url "/reply")
done:await()
check.equal(done:cancel(), false)
check.equal(done.state, "succeeded")

-- The server has seen the ends; no descriptor is left but those of connections that are kept.
servers.eventually(function() return server:state().open <= 1 end, "the end of the connections")
check.equal(servers.descriptors() <= before + 4, true, "descriptors")
check.equal(io.open(folder .. "/out"), nil)

-- The script may end while requests are pending, their cleanups included.
local host = require "host"
local result = host.script(([[
  local flow = require "flow"
  flow.spawn(function()
    local t <close> = flow.http(%q)
    flow.sleep(0.02)
    os.exit(3, true)
  end)
  flow.http(%q):wait()
]]):format(never, never))
check.equal(result.stderr, "")
check.equal(result.status, 3)
