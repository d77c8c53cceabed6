-- The option --progress=plain prints a line for each failure, and one every ten seconds.
local check, host = require "check", require "host"

local function plain(text, ...)
  local options = { "--virtual-clock", "--progress=plain", ... }
  return host.script("local flow = require 'flow'\n" .. text, {}, { before = options })
end

local result = plain [[
  local ItemOp = flow.op("ItemOp", { needs = { n = "integer" }, run = function(ctx)
    flow.sleep(1)
    if ctx.index % 10 == 5 then error(("no %d\nbecause\27"):format(ctx.index), 0) end
  end })
  local TryOp = flow.op("Try\nOp", { retry = { attempts = 2, delay = 15 }, run = function(ctx)
    flow.sleep(1)
    ctx:fail("hunter2")
  end })
  local numbers = {}
  for i = 1, 24 do numbers[i] = i end
  flow.new("list"):data { numbers = numbers, key = flow.secret "hunter2" }
    :add_grouped(ItemOp, { input = "numbers", max_concurrent = 1, allow_failure = true }):start():wait()
  local run = flow.new("tries"):add_parallel(TryOp, flow.new("sleeps"):add(flow.ops.SleepOp(11))):start()
  run:wait()
  print(#run:events() > 0, run.error.message)
]]
check.equal(result.stdout, "true\t<redacted>\n")
check.equal(result.stderr, [[
list/ItemOp #5 failed: no 5
because\x1B
[10s] list/ItemOp 10/24 42%, 1 running, 1 failed, 14s left
list/ItemOp #15 failed: no 15
because\x1B
[20s] list/ItemOp 20/24 83%, 1 running, 2 failed, 4s left
[11s] tries/Try\nOp, 11s, attempt 2 in 5s; 1 more
tries/Try\nOp failed after 2 attempts: <redacted>
]])

-- The failure of a run within an op is printed once, an expected stop never; other output is untouched. On a
-- virtual clock time passes with events only.
result = plain([[
  local FailOp = flow.op("FailOp", function() flow.sleep(1) error("inner", 0) end)
  local OuterOp = flow.op("OuterOp", function() FailOp:start():await() end)
  local SlowOp = flow.op("SlowOp", { timeout = 12, run = function() flow.sleep(100) end })
  io.write("half ")
  local outer = flow.new("outer"):add(OuterOp):start()
  pcall(outer.await, outer)
  local slow = SlowOp:start()
  flow.sleep(11)
  io.stderr:write("of the script\n")
  slow:wait()
  print(slow.error.kind)
  local stopped = FailOp:start()
  stopped:cancel()
  stopped:wait()
]], "--color=always")
check.equal(result.stdout, "half timeout\n")
check.equal(result.stderr, "\27[31mouter/OuterOp/FailOp failed: inner\27[0m\nof the script\n[12s] SlowOp, 12s\n"
  .. "\27[31mSlowOp failed: timed out after 12s\27[0m\n")

-- Wrong words are errors; the other values show nothing here.
for option, message in pairs {
  ["--progress=line"] = "option '--progress' takes 'auto', 'plain' or 'never', not 'line'",
  ["--progress"] = "option '--progress' needs a word: --progress auto, plain or never",
} do
  result = host.run(host.binary, { option, "--version" })
  check.equal(result.status, 2)
  check.contains(result.stderr, message)
end
for _, option in ipairs { "--progress=auto", "--progress=never", "--no-progress" } do
  result = plain('flow.op("SleepOp", function() flow.sleep(30) end):run()', option)
  check.equal(result.stderr, "")
end
