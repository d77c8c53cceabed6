-- Cancelling a task ends its wait, the tasks it alone waits for and the work it has started.
local flow, check = require "flow", require "check"
local function never() error("never called") end
local function turn() for _ = 1, 5 do flow.sleep(0) end end

-- A pending continuation stops what it waits for when nothing else waits for that.
local source = flow.spawn(function() flow.sleep(1000) end)
local last = source:next(never):next_on_success(never)
check.equal(last:cancel("enough"), true)
turn()
check.equal(last.state, "cancelled")
check.equal(source.state, "cancelled")
check.equal(tostring(source.error), "cancelled: enough")
check.equal(last:cancel(), false)

local shared = flow.with_delay(0.002, "shared")
local one, other = shared:next_on_success(never), shared:next_on_success(function(v) return v end)
one:cancel()
check.equal(one.state, "cancelled")
check.equal(shared.state, "pending")
check.equal(other:await(), "shared")

-- A cancel also reaches the task that a task awaits, and the one that an op's run awaits when that is cancelled.
local awaited = flow.with_delay(1000)
local waiter = flow.spawn(function() awaited:await() end)
waiter:cancel()
turn()
check.equal(waiter.state, "cancelled")
check.equal(awaited.state, "cancelled")
awaited = flow.with_delay(0.003, 1)
waiter = flow.spawn(function() awaited:await() end)
local second = flow.spawn(function() return awaited:await() end)
waiter:cancel()
turn()
check.equal(awaited.state, "pending")
check.equal(second:await(), 1)

-- The wait raises, and so does each wait afterwards; what the function returns then doesn't count.
local caught = {}
local stubborn = flow.spawn(function()
  for i = 1, 3 do
    local _, e = pcall(flow.sleep, 1000)
    caught[i] = e.kind .. " " .. tostring(e)
  end
  return "went on"
end)
stubborn:cancel("stop")
check.equal(stubborn:wait(), true)
check.same(caught, { "cancelled cancelled: stop", "cancelled cancelled: stop", "cancelled cancelled: stop" })
check.equal(stubborn.state, "cancelled")
check.equal(stubborn.result, nil)

-- A task ends after all that it started, cleanups included.
local order = {}
local outer = flow.spawn(function()
  flow.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() order[#order + 1] = "inner" end })
    flow.sleep(1000)
    return guard
  end)
  flow.sleep(1000)
end)
outer:cancel()
outer:wait()
order[#order + 1] = "outer"
check.same(order, { "inner", "outer" })

-- Cancelling while its function runs, by itself.
local self
self = flow.spawn(function()
  flow.sleep(0)
  self:cancel("by itself")
  flow.sleep(1000)
  error("never here")
end)
check.equal(self:wait(), true)
check.equal(tostring(self.error), "cancelled: by itself")

-- A task that raises an error of kind cancelled is cancelled; such tasks aren't reported.
check.equal(flow.spawn(function() error(flow.cancelled("x").error) end).state, "cancelled")

-- A cancelled follower stops what it follows.
local target = flow.with_delay(1000)
local follower = flow.resolved():next(function() return target end)
follower:cancel()
turn()
check.equal(target.state, "cancelled")
check.equal(follower.state, "cancelled")

-- Chains of any length are stopped without recursion.
local first = flow.with_delay(1000)
local tail = first
for _ = 1, 100000 do tail = tail:next_on_success(never) end
tail:cancel()
tail:wait()
check.equal(first.state, "cancelled")
check.equal(tail.state, "cancelled")

check.usage(function() tail:cancel({}) end, "cancel", "#1", "string expected, got table")
