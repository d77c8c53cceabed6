-- The limit `max_concurrent` of a group holds over all nodes together, while they join and leave.
-- clock: real: other processes execute the ops
local check, flow, remote = require "check", require "flow", require "remote"
local fs = require "flow.fs"

local server <close> = remote.server()
local folder = server.folder.path
local first = server:join("m1", "--grace", "inf")

-- An item ends when it may. A line for its start and one for its end are in one file, in their order.
local script = server:start(([[
  local WaitOp = flow.op("WaitOp", {
    needs = { n = "integer", folder = "string" }, thread = "remote",
    run = function(ctx)
      local flow, n, folder = require "flow", ctx:get "n", ctx:get "folder"
      local function note(line)
        local file <close> = assert(io.open(folder .. "/notes", "a"))
        file:write(line, "\n")
      end
      note("begin " .. n .. " " .. ctx.lane:match "^%%w+")
      while not flow.fs.exists(folder .. "/end" .. n) and not flow.fs.exists(folder .. "/end") do flow.sleep(0.02) end
      note("end " .. n)
    end,
  })
  local list = {}
  for k = 1, 24 do list[k] = k end
  local run = flow.new("waits"):data { ns = list, folder = %q }
    :add_grouped(WaitOp, { input = "ns", as = "n", max_concurrent = 2 }):run()
  print(run.state, run.error)
]]):format(folder))
local function notes() return fs.exists(folder .. "/notes") and fs.read(folder .. "/notes") or "" end
local function wait_for(pattern)
  for _ = 1, 6000 do
    if notes():find(pattern) then return end
    if script.state ~= "pending" then error("the script ended: " .. script:await().stdout .. notes(), 2) end
    flow.sleep(0.02)
  end
  error(("no '%s' in:\n%s"):format(pattern, notes()), 2)
end
local function begun() return select(2, notes():gsub("begin", "")) end
-- A node executes what it gets: it would have got more items by then.
local function use(tag)
  check.equal(server:run(([[
    print(flow.new("f"):add(flow.op("Op", { thread = "remote", tags = %q, run = function() end })):run().state)
  ]]):format(tag)).stdout, "succeeded\n")
end

-- One node has both, and another one that joins gets none.
wait_for "begin 1 m1"
wait_for "begin 2 m1"
server:join("m2", "--tags", "second")
use "second"
check.equal(begun(), 2)

-- The first one takes no more. Each has one, and a third node, with the second one's other worker, gets none.
first:signal "TERM"
first:wait_for_line "leaves when 2 jobs have ended"
io.open(folder .. "/end1", "w"):close()
wait_for "begin 3 m2"
server:join("m3", "--tags", "third")
use "third"
check.equal(begun(), 3)

-- All others, on two nodes.
io.open(folder .. "/end", "w"):close()
local result = script:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "succeeded\tnil\n")
local running, most = 0, 0
for what in notes():gmatch "(%l+) %d" do
  running = running + (what == "begin" and 1 or -1)
  most = math.max(most, running)
end
check.equal(begun(), 24)
check.equal(running, 0)
check.equal(most, 2)
