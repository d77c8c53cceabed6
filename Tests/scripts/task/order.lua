-- Continuations run on the chosen thread and in the documented order.
local flow, check = require "flow", require "check"

local log
local function note(text) return function() log[#log + 1] = text end end

-- In the order of registration, at once.
log = {}
local c = flow.context()
c.task:next(note "a")
c.task:next_on_success(note "b")
c.task:next(note "posted", { thread = "main" })
c.task:finally(note "c")
c.task:next(note "immediate", { thread = "immediate" })
c:set_result(1)
check.same(log, { "a", "b", "c", "immediate" })
flow.sleep(0)
check.same(log, { "a", "b", "c", "immediate", "posted" })

-- On a settled task a continuation runs within the call.
log = {}
c.task:next(note "now")
check.same(log, { "now" })

-- The default is immediate until 20 deep, then posted; "immediate" continues once those have returned.
local function nested(opts)
  local depth, deepest, count = 0, 0, 0
  local function go()
    count = count + 1
    depth = depth + 1
    deepest = math.max(deepest, depth)
    if count < 50 then flow.resolved():next(go, opts) end
    depth = depth - 1
  end
  go()
  local at_once = count
  while count < 50 do flow.sleep(0) end
  return at_once, deepest
end
local at_once, deepest = nested()
check.equal(at_once, 21)
check.equal(deepest, 21)
at_once, deepest = nested { thread = "immediate" }
check.equal(at_once, 50)
assert(deepest <= 21, deepest)
at_once, deepest = nested { thread = "main" }
check.equal(at_once, 1)
check.equal(deepest, 1)

-- The others continue while one waits.
log = {}
local waiting = c.task:next(function() flow.sleep(0.002) log[#log + 1] = "waited" end)
c.task:next(note "went on")
check.same(log, { "went on" })
waiting:await()
check.same(log, { "went on", "waited" })

-- One that raises fails its own task only.
local d = flow.context()
local first = d.task:next(function() error("mine", 0) end)
local second = d.task:next(function() return "fine" end)
d:set_result()
check.equal(tostring(first.error), "mine")
check.equal(second:await(), "fine")
check.equal(d.task.state, "succeeded")
