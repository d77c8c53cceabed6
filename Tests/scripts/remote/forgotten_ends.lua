-- A server that is killed forgets which items have ended, and hands them out again: only those execute again that were in flight.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
for k = 1, 3 do server:join("m" .. k) end
local script = server:start(([[
  local Op = flow.op("WorkOp", {
    needs = { n = "integer", notes = "string" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      local file <close> = assert(io.open(ctx:get "notes", "a"))
      file:write(ctx:get "n", "\n")
      require "flow".sleep(0.02)
      ctx:set("r", ctx:get "n" * 2)
    end,
  })
  local list = {}
  for k = 1, 300 do list[k] = k end
  local run = flow.new("work"):data { ns = list, notes = %q }
    :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 6 }):start()
  for k = 1, 3 do
    while finished(run) < 60 * k do flow.sleep(0.001) end
    report()
  end
  run:wait()
  print(run.state, run.error, #run.data.rs)
]]):format(server.folder .. "/notes"))
for _ = 1, 3 do
  server:wait_for_report(script)
  server:kill()
  server:restart()
end
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t300\n")
local count = 0
for _ in io.lines(server.folder .. "/notes") do count = count + 1 end
check.equal(count >= 300 and count <= 300 + 3 * 6, true, count .. " executions of 300 items")
