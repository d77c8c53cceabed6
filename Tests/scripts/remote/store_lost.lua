-- After the server has lost its store, a node acknowledges no message of the next script that has an old number.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join("m1", "--workers", "2")
local function script(seconds)
  return ([[
    local Op = flow.op("WorkOp", { needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
      run = function(ctx)
        if ctx:get "n" == 3 or ctx:get "n" == 4 then ctx:log "began" end
        os.execute "sleep %s"
        ctx:set("r", ctx:get "n")
      end })
    local run = flow.new("work"):data { ns = { 1, 2, 3, 4, 5, 6 } }
      :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 6 }):start()
    local function begun()
      local count = 0
      for _, event in ipairs(run:events()) do if event.kind == "log" then count = count + 1 end end
      return count
    end
    while begun() < 2 do flow.sleep(0.005) end
    report()
    run:wait()
    print(run.state, run.ok and table.concat(run.data.rs, " "))
  ]]):format(seconds)
end
local first = server:start(script "2")
server:wait_for_report(first)
server:kill()
flow.fs.remove(server.folder .. "/store", { recursive = true })
server:restart()
check.match(first:await().stdout, "^failed\t")
-- The node reports the third and fourth op of the first script while those of the second one wait for it.
local second = server:run(script "2")
check.equal(second.stderr, "")
check.equal(second.stdout, "succeeded\t1 2 3 4 5 6\n")
