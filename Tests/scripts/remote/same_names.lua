-- Scripts of one name, and nodes of one name, work at the same time without confusing their ops.
-- clock: real: other processes execute the ops
local check, flow, host, remote = require "check", require "flow", require "host", require "remote"

local server <close> = remote.server()
server:join "twin"
server:join "twin"
local path = server.folder .. "/script.lua"
flow.fs.write(path, [[
  local flow = require "flow"
  local base = math.tointeger(arg[1])
  local Op = flow.op("WorkOp", {
    needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      require "flow".sleep(0.005)
      ctx:set("r", ctx:get "n" * 2)
    end,
  })
  local list = {}
  for k = 1, 40 do list[k] = base + k end
  local run = flow.new("work"):data { ns = list }:add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 8 }):run()
  local good = 0
  for k, r in ipairs(run.data.rs or {}) do if r == 2 * (base + k) then good = good + 1 end end
  print(run.state, run.error, good)
]])
local scripts = {}
for k = 1, 4 do
  scripts[k] = flow.exec({ host.binary, "--remote", server.url, "--no-progress", path, tostring(k * 1000) }, { check = false })
end
for _, script in ipairs(scripts) do
  local result = script:await()
  check.equal(result.stderr, "")
  check.equal(result.stdout, "succeeded\tnil\t40\n")
end

-- Others that end while the items of one wait take none of them away.
local waiting = server:start [[
  local Op = flow.op("WaitOp", { needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote", tags = "late",
    run = function(ctx) ctx:set("r", ctx:get "n") end })
  local list = {}
  for k = 1, 10 do list[k] = k end
  local run = flow.new("f"):data { ns = list }:add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 10 }):start()
  flow.sleep(0.5)
  report()
  run:await()
  print(run.state, run.error, #run.data.rs)
]]
server:wait_for_report(waiting)
check.equal(server:run([[
  local Op = flow.op("Op", { thread = "remote", tags = "late", run = function() end })
  local run = flow.new("f"):add(Op):start()
  flow.sleep(0.5)
  run:cancel()
  pcall(run.await, run)
  print(run.state)
]]).stdout, "cancelled\n")
server:join("twin", "--tags", "late")
local result = waiting:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t10\n")

-- One of two nodes with a name is lost, with what it executes: the items execute elsewhere.
local script = server:start [[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      ctx:log "begun"
      require "flow".sleep(0.2)
      ctx:set("r", ctx:get "n" * 2)
    end,
  })
  local list = {}
  for k = 1, 16 do list[k] = k end
  local run = flow.new("work"):data { ns = list }:add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 4 }):start()
  local function begun()
    local count = 0
    for _, event in ipairs(run:events()) do if event.kind == "log" then count = count + 1 end end
    return count
  end
  while begun() < 4 do flow.sleep(0.001) end
  report()
  run:await()
  print(run.state, run.error, #run.data.rs)
]]
server:wait_for_report(script)
server.nodes[1]:signal "KILL"
result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t16\n")
