-- A server that stands still longer than leases last continues where it was: no item is lost, and only those in flight execute again.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"
server:join "m2"
local script = server:start(([[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer", notes = "string" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      local file = assert(io.open(ctx:get "notes", "a"))
      file:write(ctx:get "n", "\n")
      file:close()
      require "flow".sleep(0.05)
      ctx:set("r", ctx:get "n" * 2)
    end,
  })
  local list = {}
  for k = 1, 60 do list[k] = k end
  local run = flow.new("work"):data { ns = list, notes = %q }
    :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 4 }):start()
  while finished(run) < 8 do flow.sleep(0.001) end
  report()
  run:await()
  local good = 0
  for k, r in ipairs(run.data.rs or {}) do if r == 2 * k then good = good + 1 end end
  print(run.state, run.error, good)
]]):format(server.folder .. "/notes"))
server:wait_for_report(script)
server:signal "STOP"
flow.sleep(7)
server:signal "CONT"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t60\n")
local begun = 0
for _ in io.lines(server.folder .. "/notes") do begun = begun + 1 end
check.equal(begun >= 60 and begun <= 64, true, begun .. " executions of 60 items, 4 at a time")
