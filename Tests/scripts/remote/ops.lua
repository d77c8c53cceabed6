-- Ops with thread = "remote" execute on nodes that have joined, with needs, gives, logs, progress, retries and errors.
-- clock: real: other processes execute the ops
local check = require "check"
local remote = require "remote"

local server <close> = remote.server()
server:join "m1"

local result = server:run [[
  local factor = 3
  local Op = flow.op("TripleOp", {
    needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      ctx:progress(1, 2)
      ctx:log("on " .. ctx.lane:match "^%a+%d")
      ctx:set("r", ctx:get("n") * factor)
    end,
  })
  assert(Op.thread == "remote" and Op.tags == nil)
  local list = {}
  for k = 1, 50 do list[k] = k end
  local run = flow.new("numbers"):data { ns = list }
    :add_grouped(Op, { input = "ns", output = "rs", max_concurrent = 10 }):run()
  local sum = 0
  for _, r in ipairs(run.data.rs) do sum = sum + r end
  print(#run.data.rs, sum)
  local lanes, logs = {}, 0
  for _, event in ipairs(run:events()) do
    if event.kind == "log" then logs = logs + 1 end
    if event.kind == "finish" and event.op == "TripleOp" then lanes[event.lane] = true end
  end
  local names = {}
  for name in pairs(lanes) do names[#names + 1] = name end
  table.sort(names)
  print(logs, table.concat(names, " "))

  -- Each attempt is one of the op.
  local Fails = flow.op("FailsOp", {
    thread = "remote", retry = { attempts = 3, delay = 0.001 },
    run = function(ctx) error { code = 7, attempt = ctx.attempt, list = { 1, 2 } } end,
  })
  local run = flow.new("failing"):add(Fails):run()
  print(run.state, run.error.kind, run.error.code, run.error.cause.attempt, #run.error.cause.list, run.error.path)

  -- Flows, nested groups, waits and tasks are as they are for a worker.
  local Waits = flow.op("WaitsOp", {
    needs = { n = "integer" }, gives = { r = "any" }, thread = "remote",
    run = function(ctx)
      local flow = require "flow"
      local tasks = {}
      for k = 1, 3 do tasks[k] = flow.spawn(function() flow.sleep(0.001) return k * ctx:get "n" end) end
      ctx:set("r", { list = flow.when_all_succeed(tasks):await() })
    end,
  })
  local run = flow.new("waiting"):data { n = 2 }:add(Waits):run()
  print(run.state, table.concat(run.data.r.list, " "))

  -- Continuations, too.
  local task = flow.resolved(20):next(function(t) return t.result + 1 end, { thread = "remote" })
  print(task:await(), flow.resolved(1):next("remote", function() return "first" end):await())
  local failed = flow.failed("broken"):next_on_error(function(e) return e.message .. "!" end, { thread = "remote" })
  print(failed:await())
]]
check.equal(result.stderr, "")
check.equal(result.stdout, [[
50	3825
50	m1/1 m1/2
failed	error	7	3	2	failing/FailsOp
succeeded	2 4 6
21	first
broken!
]])
check.equal(result.status, 0)

-- The library of NATS ignores SIGPIPE; a script and its programs are ended by it nevertheless.
local result = server:run [[
  local Op = flow.op("Op", { thread = "remote", gives = { r = "integer" }, run = function(ctx) ctx:set("r", 1) end })
  flow.new("f"):add(Op):run()
  local ignored = io.open "/proc/self/status":read "a":match "SigIgn:%s*(%x+)"
  print(tonumber(ignored, 16) & 1 << 12)
]]
check.equal(result.stdout, "0\n")

-- While a script is checked, its continuations have no effect on nodes either.
local path = server.folder .. "/made"
result = server:run(([[
  print(pcall(function() flow.resolved():next("remote", function() io.open(%q, "w") end):await() end))
]]):format(path), "--check")
check.contains(result.stdout, "bad use of 'open' (not while checking)")
check.equal(io.open(path), nil)
