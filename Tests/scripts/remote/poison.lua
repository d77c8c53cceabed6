-- A job whose nodes are lost three times fails with kind "crashed", and names them.
-- clock: real: other processes execute the ops, and leases end
local check = require "check"
local remote = require "remote"

local server <close> = remote.server()
for k = 1, 3 do server:join("box" .. k, "--workers", "1") end
local result = server:run [[
  local Op = flow.op("PoisonOp", { thread = "remote", run = function() os.execute "kill -9 $PPID" end })
  local run = flow.new("f"):add(Op):run()
  print(run.state, run.error.kind)
  local names = {}
  for name in run.error.message:gmatch "'(box%d)/1'" do names[#names + 1] = name end
  table.sort(names)
  print(table.concat(names, " "), (run.error.message:match "^[^:]+"))
]]
check.equal(result.stderr, "")
check.equal(result.stdout, "failed\tcrashed\nbox1 box2 box3\tits node was lost 3 times\n")
