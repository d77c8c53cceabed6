-- A machine whose steps never wait lets other tasks, timers and signals have their turns.
-- clock: real: signals of the system
local flow, check, host = require "flow", require "check", require "host"

local count = 0
local function machine(run)
  return flow.machine { name = "endless", start = "a", max_transitions = 1 << 50,
    flow.step("a", { run = run, flow.next(flow.forward "b") }),
    flow.step("b", { run = run, flow.next(flow.forward "a") }) }
end
for _, step in ipairs {
  function(state) count = count + 1 return state end,
  flow.op("CountOp", function() count = count + 1 end),
  -- Few steps take long.
  function(state)
    local stop = os.clock() + 0.01
    while os.clock() < stop do end
    count = count + 1
    return state
  end,
} do
  local began = os.time()
  local run = machine(step):start { n = 1 }
  local ticks = flow.spawn(function()
    for _ = 1, 3 do
      local before = count
      flow.sleep(0.001)
      assert(count > before)
    end
  end)
  ticks:await()
  run:cancel()
  check.equal(run:wait(10), true)
  check.equal(run.state, "cancelled")
  assert(os.time() - began < 30, "the first turn was long")
end

-- On a virtual clock, which stands still meanwhile, too.
local outcome = host.run(host.binary, { "--virtual-clock", "-e", [[
  local flow = require "flow"
  local function same(state) return state end
  local run = flow.machine { name = "m", start = "a", max_transitions = 1 << 50,
    flow.step("a", { run = same, flow.next(flow.forward "a") }) }:start { n = 1 }
  flow.spawn(function() flow.sleep(0) run:cancel() end)
  run:wait()
  print(run.state)]] })
check.equal(outcome.stdout, "cancelled\n", outcome.stderr)

-- Its cleanups follow a signal, also one that comes while a line of the log is made.
for round = 1, 10 do
  local signal, status = "INT", 130
  if round > 8 then signal, status = "TERM", 143 end
  local result = host.signalled(host.binary, { "-e", [[
    local flow = require "flow"
    io.stdout:setvbuf "no"
    local isReady = false
    local function step(state)
      if not isReady then isReady = true print "ready" end
      return state
    end
    local machine = flow.machine { name = "m", start = "a", max_transitions = 1 << 50,
      flow.step("a", { run = step, flow.next(flow.forward "a") }) }
    flow.new("f"):add(machine):add_finally(flow.op("EndOp", function() print "cleaned" end)):start { n = 1 }]] }, signal)
  check.equal(result.status, status, result.stdout)
  check.contains(result.stdout, "ready\ncleaned\n")
end
