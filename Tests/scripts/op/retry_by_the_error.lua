-- An error and functions of the policy decide whether and when there is another attempt.
local flow, check = require "flow", require "check"
local testing = require "flow.testing"

-- An op that fails with the outcomes in turn; runs it, and returns the run and the attempts made.
local function run(retry, outcomes, options)
  local attempts = 0
  local FlakyOp = flow.op("FlakyOp", {
    retry = retry, thread = options and options.thread,
    run = function(ctx)
      local outcome = outcomes[ctx.attempt]
      if type(outcome) == "function" then outcome(ctx) elseif outcome then error(outcome, 0) end
    end,
  })
  local op = FlakyOp
  if options and options.around then op = options.around(FlakyOp) end
  local settled = testing.run(op, { data = options and options.data })
  local _ = settled.error  -- somebody has looked
  for _, event in ipairs(settled:events()) do
    if event.kind == "retry" then attempts = attempts + 1 end
  end
  return settled, attempts + 1
end
local function failing(fields) return function(ctx) ctx:fail("no", fields) end end

for _, thread in ipairs { "main", "worker" } do
  local options = { thread = thread }
  -- Not again.
  local settled, attempts = run(5, { "bad", failing { retry = false } }, options)
  check.equal(attempts, 2)
  check.equal(settled.error.message, "no")
  check.equal(settled.error.retry, false)
  -- Later: longer than the delay, up to max_delay, a minute without one; never shorter.
  local function duration(retry, after)
    local done, n = run(retry, { failing { retry_after = after } }, options)
    assert(done.ok, done.error)
    check.equal(n, 2)
    return done.duration
  end
  check.equal(duration({ attempts = 2, delay = 1 }, 30), 30.0)
  check.equal(duration({ attempts = 2, delay = 1, max_delay = 10 }, 30), 10.0)
  check.equal(duration({ attempts = 2, delay = 1 }, 3600), 60.0)
  check.equal(duration({ attempts = 2, delay = 1, max_delay = 4000 }, 3600), 3600.0)
  check.equal(duration({ attempts = 2, delay = 1 }, 0.5), 1.0)
  check.equal(duration({ attempts = 2, delay = 1 }, -1), 1.0)
end

-- A raised table says it as well, and gives its message and code.
local settled, attempts = run(5, { { message = "quota", code = "E42", retry = false } })
check.equal(attempts, 1)
check.equal(settled.error.message, "quota")
check.equal(settled.error.code, "E42")
check.equal(settled.error.kind, "error")
check.equal(settled.error.cause.message, "quota")
settled = run({ attempts = 2 }, { { retry_after = 7, code = 9 } })
check.equal(settled.duration, 7.0)
check.contains(settled:summary(), "Retry 2/2 in 7s: ")

-- `when` is asked with the error and the attempt that has failed, where the kind allows another.
local seen = {}
local function when(e, attempt)
  seen[#seen + 1] = attempt .. " " .. e.message
  return e.code ~= 403
end
settled, attempts = run({ attempts = 9, when = when }, { "bad", "worse", failing { code = 403 } })
check.equal(attempts, 3)
check.equal(settled.error.code, 403)
check.same(seen, { "1 bad", "2 worse", "3 no" })
seen = {}
settled, attempts = run({ attempts = 2, when = when }, { "bad", "worse" })
check.equal(attempts, 2)
check.same(seen, { "1 bad" })
seen = {}
settled, attempts = run({ attempts = 9, when = when }, { function(ctx) ctx:get "missing" end })
check.equal(attempts, 1)
check.equal(settled.error.kind, "insufficient_input")
settled, attempts = run({ attempts = 9, when = when }, { failing { retry = false } })
check.equal(attempts, 1)
check.same(seen, {})
local failed
settled, attempts = run({ attempts = 3, when = function(e) failed = e return nil end }, { "bad" })
check.equal(attempts, 1)
assert(rawequal(settled.error, failed))

-- `delay` as a function; max_delay and retry_after hold for it too.
local function squares(_, attempt) return attempt * attempt end
settled = run({ attempts = 4, delay = squares }, { "a", "b", "c" })
assert(settled.ok, settled.error)
check.equal(settled.duration, 14.0)
settled = run({ attempts = 4, delay = squares, max_delay = 3 }, { "a", "b", "c" })
check.equal(settled.duration, 7.0)
settled = run({ attempts = 2, delay = squares }, { failing { retry_after = 5 } })
check.equal(settled.duration, 5.0)

-- They may wait, and belong to the run meanwhile.
settled = run({
  attempts = 2, when = function() flow.sleep(2) return true end,
  delay = function() return flow.with_delay(3, 4):await() end,
}, { "a" })
assert(settled.ok, settled.error)
check.equal(settled.duration, 9.0)

-- For flows, places and groups, in workers.
local counted = 0
local function count(e) counted = counted + 1 return e.message ~= "stop" end
settled = run(nil, { "bad" }, { around = function(op)
  local inner, tries = flow.new("inner"), 0
  inner:add(flow.op("OnceOp", function() tries = tries + 1 if tries == 1 then error("bad", 0) end end)):add(op)
  return flow.new("outer"):add(inner:with { retry = { attempts = 3, when = count, delay = squares } })
end })
check.equal(settled.error.message, "bad")
check.equal(counted, 2)
check.equal(settled.duration, 5.0)
for _, thread in ipairs { "main", "worker" } do
  counted = 0
  local ItemOp = flow.op("ItemOp", {
    needs = { n = "integer" }, thread = thread,
    run = function(ctx)
      if ctx.attempt <= ctx:get "n" then error("again", 0) end
      if ctx:get "n" == 3 then error("stop", 0) end
    end,
  })
  settled = testing.run(flow.new("group"):add_grouped(
    ItemOp:with { retry = { attempts = 9, when = count, delay = function() return 0.5 end } },
    { input = "list", allow_failure = true, failures = "failed" }), { data = { list = { 1, 2, 3 } } })
  assert(settled.ok, settled.error)
  check.equal(#settled.data.failed, 1)
  check.equal(settled.data.failed[1].error.message, "stop")
  check.equal(counted, 1 + 2 + 4)
end

-- An error in one ends the op, and says whose it is.
settled, attempts = run({ attempts = 9, when = function() error("oops") end }, { "bad" })
check.equal(attempts, 1)
check.contains(settled.error.message, "'when' of retry failed: ", "retry_by_the_error.lua:", ": oops")
check.contains(settled.error.traceback, "retry_by_the_error.lua:")
for _, answer in ipairs { "soon", -1, 0 / 0, math.huge, false } do
  local function delay() return answer end
  settled, attempts = run({ attempts = 9, delay = delay }, { "bad" })
  check.equal(attempts, 1)
  local got = type(answer) == "number" and tostring(answer) or type(answer)
  check.match(settled.error.message, "^[^:]*retry_by_the_error.lua:" .. debug.getinfo(delay).linedefined
    .. ": 'delay' of retry must return a finite number of seconds, at least 0, got ")
  if answer == answer then check.contains(settled.error.message, "got " .. got) end
end

-- Cancelled and timed out while one waits; an op of its own is stopped with it.
local task = flow.op("FlakyOp", { retry = { attempts = 9, when = function() flow.sleep(100) end },
  run = function() error("bad", 0) end }):start()
check.equal(task:cancel("enough"), true)
task:wait()
check.equal(task.state, "cancelled")
check.contains(task:summary(), "[FlakyOp] DidFinish: cancelled: enough")
settled = testing.run(flow.new("outer"):add(flow.op("FlakyOp", {
  retry = { attempts = 9, when = function() flow.sleep(100) end }, run = function() error("bad", 0) end,
})):with { timeout = 3 })
check.equal(settled.error.kind, "timeout")
check.equal(settled.duration, 3.0)

-- Wrong fields.
local function with(retry) return function() flow.op("X", { retry = retry, run = print }) end end
check.usage(with { attempts = 2, when = 1 }, "op", "field 'retry.when': function expected, got number")
check.usage(with { attempts = 2, delay = "1" }, "op", "field 'retry.delay'", "got string")
check.usage(with { attempts = 2, delay = {} }, "op", "field 'retry.delay': number or function expected, got table")
check.usage(with { attempts = 2, delay = squares, factor = 2 }, "op", "field 'retry.factor'")
