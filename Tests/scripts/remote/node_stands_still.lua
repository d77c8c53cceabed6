-- A node that stands still longer than leases last continues with its jobs, none of which begins a second time.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
local node = server:join("m1", "--workers", "1")
local running = server:start(([[
  local Op = flow.op("WorkOp", { needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote",
    run = function(ctx)
      local flow = require "flow"
      do local f <close> = assert(io.open(%q, "a")) f:write(ctx:get "n", "\n") end
      while not flow.fs.exists(%q) do flow.sleep(0.02) end
      ctx:set("r", ctx:get "n" * 2)
    end })
  local run = flow.new("work"):data { ns = { 1, 2, 3 } }
    :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 3 }):start()
  local begun, go = %q, %q
  local function count(text, part) return select(2, text:gsub(part, "")) end
  repeat flow.sleep(0.02) until flow.fs.exists(begun) and count(flow.fs.read(begun), "\n") >= 3
  report()
  repeat flow.sleep(0.02) until count(run:summary(), "handed it out") == 3
  flow.fs.write(go, "")
  run:wait()
  print(run.state, run.error, table.concat(run.data.rs, " "))
  for line in run:summary():gmatch "[^\n]+" do
    if line:find "handed it out" then print((line:gsub("^.-%%[", "["))) end
  end
]]):format(server.folder .. "/begun", server.folder .. "/go", server.folder .. "/begun", server.folder .. "/go"))
server:wait_for_report(running)
node:signal "STOP"
-- The server hands out items of which it has no report for 5 s.
flow.sleep(7)
node:signal "CONT"
-- The ops end once their script knows of all three that they were handed out again.
local result = running:await()
check.equal(result.stderr, "")
check.match(result.stdout, "^succeeded\tnil\t2 4 6\n" ..
  ("%[WorkOp #%d%] the queue handed it out to m1 again, which continues with it\n"):rep(3) .. "$")
local begun = {}
for line in io.lines(server.folder .. "/begun") do begun[#begun + 1] = line end
table.sort(begun)
check.same(begun, { "1", "2", "3" })
