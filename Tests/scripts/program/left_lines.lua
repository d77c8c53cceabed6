-- A program whose lines nobody takes any more holds up nothing: it ends with its op, or runs to its end if code waits.
local flow, check = require "flow", require "check"

-- Much more than a pipe and the lines that are kept for a reader.
local LINE = ("y"):rep(999)
local PROGRAM = { "sh", "-c", "yes \"$0\" | head -c 600000; echo end", LINE }
local readers
local function opened()
  local program = flow.exec(PROGRAM)
  local next_line = program:lines()
  check.equal(next_line(), LINE)
  -- Kept, so that no collection closes it.
  readers[#readers + 1] = next_line
  return program
end
local function pass() end

local cases = {
  left = function() opened() end,
  broken_off = function()
    for _ in flow.exec(PROGRAM):lines() do break end
  end,
  fails = function()
    opened()
    error "on purpose"
  end,
  returned = function() return opened() end,
  returned_continuation = function() return opened():next(pass) end,
  returned_continuations = function() return opened():next(pass):finally(pass):next_on_success(pass) end,
  returned_join = function() return flow.when_all_succeed { opened(), flow.resolved(1) } end,
  returned_continuation_of_a_join = function() return flow.when_all_finish({ opened() }):next(pass) end,
  returned_after_a_break = function()
    local program = flow.exec(PROGRAM)
    for _ in program:lines() do break end
    return program:next(pass)
  end,
  returned_with_a_line = function()
    local program = flow.exec { "sh", "-c", "echo y; echo left" }
    readers[1] = program:lines()
    return program:next(pass)
  end,
  awaited_continuation = function() opened():next(pass):await() end,
  awaited_before_it_is_full = function()
    local program = flow.exec(PROGRAM)
    readers[1] = program:lines()
    program:next(pass):await()
  end,
  awaited_spawn_that_returns_it = function()
    local program = opened()
    flow.spawn(function() return program end):await()
  end,
  awaited_op_that_returns_it = function()
    local program = opened()
    check.equal(flow.op("InnerOp", function() return program end):run().ok, true)
  end,
  awaited_continuation_that_returns_it = function()
    local program = opened()
    flow.resolved(1):next(function() return program end):await()
  end,
  awaited_in_a_cleanup = function(ctx)
    local program = opened()
    ctx:defer(function() program:next(pass):await() end)
  end,
  awaited_from_a_machine = function()
    local program = opened()
    local machine = flow.machine {
      name = "waits", start = "go", flow.step("go", { final = true, run = function() return program:next(pass) end }),
    }
    check.equal(machine:run().ok, true)
  end,
}
-- A context may be settled by anything: the program continues when only time limits are left.
local opaque = {
  settled_by_a_continuation = function()
    local context = flow.context()
    opened():next(function() context:set_result(true) end)
    context.task:await()
  end,
}

local function run(list, text)
  for name, body in pairs(list) do
    readers = {}
    local run = flow.op("ProbeOp", { timeout = 1000, run = body }):run()
    check.equal(run.ok, name ~= "fails", ("%s, %s: %s"):format(name, text, run.error))
    check.equal(run.duration < 500, true, ("%s, %s: waited until the timeout"):format(name, text))
  end
end
run(cases, "alone")
run(opaque, "alone")
-- Something else may be pending, whose time comes first.
local later = flow.with_delay(1e6)
run(cases, "with a timer")
later:cancel()

-- A continuation that nothing waits for doesn't lift the bound: a slow reader holds the program back.
local function resident()
  local file <close> = assert(io.open "/proc/self/statm")
  return tonumber(file:read("a"):match "^%d+ (%d+)") * 4096
end
local program = flow.exec { "sh", "-c", "yes \"$0\" | head -c 80000000", ("x"):rep(9999) }
local ended = false
program:next(function() ended = true end)
local next_line = program:lines()
next_line()
local before = resident()
flow.sleep(1)
assert(resident() - before < 40 << 20 or os.getenv "FLOWLUA_SANITIZER", "the bound counts")
check.equal(ended, false)
program:cancel()
program:wait()
