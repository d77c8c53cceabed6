-- A cluster of three servers keeps three copies of the queue: when one is lost, ops execute nevertheless.
-- clock: real: other processes execute the ops
local check = require "check"
local flow = require "flow"
local remote = require "remote"

local function cluster_config(k, ports)
  local routes = {}
  for n, port in ipairs(ports) do routes[n] = "nats://127.0.0.1:" .. port end
  return ([[
    server_name: queue%d
    cluster { name: test, listen: "127.0.0.1:%d", routes: [ "%s" ] }
  ]]):format(k, ports[k], table.concat(routes, '", "'))
end

-- Each server has to know the ports of all.
local ports = remote.free_ports(3)
local one <close> = remote.server { config = cluster_config(1, ports) }
local two <close> = remote.server { config = cluster_config(2, ports) }
local all = { one, two }

local function wait_for(text)
  for _ = 1, 3000 do
    for _, server in ipairs(all) do
      for _, line in ipairs(server.server.output) do
        if line:find(text, 1, true) then return end
      end
    end
    flow.sleep(0.01)
  end
  error("no server has said: " .. text, 2)
end
wait_for "Self is new JetStream cluster metadata leader"

-- The node comes before the third server, and waits for it: a queue keeps the number of copies it began with.
one.url = one.url .. "," .. two.url
local node = flow.spawn(function() return one:join "m1" end)
local three <close> = remote.server { config = cluster_config(3, ports) }
all[3] = three
node:await()
one.url = one.url .. "," .. three.url
local op = [[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx) ctx:set("r", ctx:get "n" * 2) end,
  })
  local function work()
    local list = {}
    for k = 1, 20 do list[k] = k end
    local run = flow.new("work"):data { ns = list }:add_grouped(Op, { input = "ns", output = "rs" }):run()
    print(run.state, run.error, run.data.rs and #run.data.rs)
  end
  work()
  report()
  while not io.open(arg[0] .. ".next") do flow.sleep(0.01) end
  os.remove(arg[0] .. ".next")
  work()
]]
-- The script tells where it is, so that the test can let it continue.
op = op:gsub("arg%[0%]", "%%q"):format(one.folder .. "/go", one.folder .. "/go")
local running = one:start(op)
one:wait_for_report()
-- All three servers have a copy; two of them are enough for the script to continue.
local function has(server, stream)
  local path = server.folder .. "/store/jetstream/$G/streams/" .. stream
  for _ = 1, 6000 do
    if flow.fs.exists(path) then return true end
    flow.sleep(0.01)
  end
  return false
end
for _, stream in ipairs { "FLOWLUA_WORK", "FLOWLUA_NEWS", "OBJ_flowlua" } do
  for _, server in ipairs(all) do check.equal(has(server, stream), true, stream) end
end
-- The one whose clients have to find another one.
two:kill()
io.open(one.folder .. "/go.next", "w"):close()
local result = running:await()
check.equal(result.stdout, ("succeeded\tnil\t20\n"):rep(2))
