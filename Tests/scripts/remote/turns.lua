-- A script doesn't wait for all ops that another one has for the same nodes: they take turns.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"

local server <close> = remote.server()
server:join("m1", "--workers", "2")
local done = server.folder .. "/done"
-- Ops that keep their workers busy, each of which notes its end.
local many = server:start(([[
  local Op = flow.op("Op", { thread = "remote", run = function() os.execute "sleep 0.1; echo >>%s" end })
  local ops = {}
  for k = 1, 80 do ops[k] = Op end
  print(flow.new("many"):add_parallel(table.unpack(ops)):run().state)
]]):format(done))
while not flow.fs.exists(done) do flow.sleep(0.01) end
local few = server:run(([[
  local Op = flow.op("Op", { thread = "remote", run = function() os.execute "sleep 0.1" end })
  local before = #flow.fs.read(%q)
  print(flow.new("few"):add_parallel(Op, Op):run().state, #flow.fs.read(%q) - before)
]]):format(done, done))
local state, meanwhile = few.stdout:match "(%w+)\t(%d+)"
check.equal(state, "succeeded", few.stdout .. few.stderr)
check.equal(tonumber(meanwhile) < 50, true, "so many of the other script's ops ended meanwhile: " .. meanwhile)
check.equal(many:await().stdout, "succeeded\n")
check.equal(#flow.fs.read(done), 80)
