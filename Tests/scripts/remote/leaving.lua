-- A node that is asked to end takes no more jobs and ends when those that execute have ended, or gives them back.
-- clock: real: other processes execute the ops
local check = require "check"
local remote = require "remote"

local server <close> = remote.server()
local script = [[
  local Op = flow.op("WorkOp", {
    gives = { r = "string" }, thread = "remote",
    run = function(ctx)
      ctx:log "began"
      require "flow".sleep(ctx.lane:find "first" and %s or 0.01)
      ctx:set("r", ctx.lane:match "^%%a+")
    end,
  })
  local run = flow.new("work"):add(Op):start()
  local function began()
    for _, event in ipairs(run:events()) do if event.kind == "log" then return true end end
  end
  while not began() do flow.sleep(0.001) end
  print "began"
  report()
  run:await()
  print(run.data.r)
]]

-- It ends the job, and then itself.
local node = server:join "first"
-- It outlives the patience with which a signal waits for a process that stands still.
local running = server:start(script:format "4")
server:wait_for_report()
node:signal "TERM"
check.equal(running:await().stdout, "began\nfirst\n")
check.equal(node:wait(), 0)

-- The job takes longer than the grace: another node executes it.
local node = server:join("first", "--grace", "0.2")
local running = server:start(script:format "100")
server:wait_for_report()
server:join "second"
node:signal "TERM"
local result = running:await()
check.equal(result.stderr, "")
check.equal(result.stdout, "began\nsecond\n")
check.equal(node:wait(), 0)
check.contains(table.concat(node.output, "\n"), "leaves when 1 job has ended")

local function end_second()
  for _, old in ipairs(server.nodes) do
    if old.name == "second" then
      old.name = "ended"
      old:signal "TERM"
      old:wait()
    end
  end
end

-- A second signal doesn't wait for the grace, and says so. SIGHUP comes twice when a terminal is closed.
for first, second in pairs { TERM = "TERM", INT = "INT", HUP = "TERM" } do
  end_second()
  local node = server:join("first")
  local running = server:start(script:format "100")
  server:wait_for_report()
  node:signal(first)
  if first == "HUP" then node:signal "HUP" end
  node:wait_for_line "leaves when 1 job has ended"
  server:join "second"
  node:signal(second)
  node:wait_for_line "gives 1 job back"
  check.equal(running:await().stdout, "began\nsecond\n")
  check.equal(node:wait(), 0)
end

-- A third one doesn't wait for the server, which stands still.
end_second()
local node = server:join("first")
local running = server:start(script:format "100")
server:wait_for_report()
assert(os.execute("kill -STOP " .. server.server.program.pid))
for _, line in ipairs { "leaves when 1 job has ended", "gives 1 job back", "ends without waiting for the server" } do
  node:signal "TERM"
  node:wait_for_line(line)
end
check.equal(node:wait(), 0)
assert(os.execute("kill -CONT " .. server.server.program.pid))
running:cancel()
