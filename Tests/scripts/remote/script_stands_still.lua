-- A script that stands still longer than leases last continues where it was: all items finish, and none is lost.
-- clock: real: other processes execute the ops, and leases end
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join "m1"
server:join "m2"
-- An item notes its end, and item 10 does so after the stop.
local script = server:start(([[
  local Op = flow.op("WorkOp", { needs = { n = "integer" }, gives = { r = "integer" }, thread = "remote", run = function(ctx)
    local flow, n = require "flow", ctx:get "n"
    while n == 10 and not flow.fs.exists(%q) do flow.sleep(0.02) end
    flow.sleep(0.05)
    local file <close> = assert(io.open(%q, "a"))
    file:write(n, "\n")
    ctx:set("r", n * 2)
  end })
  local list = {}
  for k = 1, 80 do list[k] = k end
  local run = flow.new("work"):data { ns = list }
    :add_grouped(Op, { input = "ns", as = "n", output = "rs", max_concurrent = 8 }):start()
  os.execute "echo $PPID >%s"
  while finished(run) < 9 do flow.sleep(0.001) end
  report()
  run:wait()
  local good = 0
  for k, r in ipairs(run.data.rs) do if r == 2 * k then good = good + 1 end end
  print(run.state, run.error, good)
]]):format(server.folder .. "/go", server.folder .. "/done", server.folder .. "/pid"))
server:wait_for_report(script)
local pid = io.open(server.folder .. "/pid"):read "n"
local function signal(name) assert(os.execute(("kill -%s %d"):format(name, pid))) end
signal "STOP"
-- The others that are on the nodes end meanwhile.
flow.sleep(6)
io.open(server.folder .. "/go", "w"):close()
signal "CONT"
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\t80\n")
local missing = 80
local seen = {}
for n in io.lines(server.folder .. "/done") do
  if not seen[n] then missing = missing - 1 end
  seen[n] = true
end
check.equal(missing, 0)
