-- What waits for itself fails instead of hanging.
local flow, check = require "flow", require "check"

local self
self = flow.spawn(function() flow.sleep(0) return self:await() end)
check.equal(self:wait(), true)
check.equal(self.error.kind, "stalled")
check.contains(self.error.message, "stalled: [task at ", "cycles.lua:5] waits for itself")

local a, b, c
a = flow.spawn(function() flow.sleep(0) return b:await() end)
b = flow.spawn(function() flow.sleep(0) return a:await() end)
check.equal(a:wait(), true)
check.equal(b:wait(), true)
check.contains(b.error.message, "waits for itself")
check.equal(a.error.kind, "stalled")

a = flow.spawn(function() flow.sleep(0) return b:await() end)
b = flow.spawn(function() flow.sleep(0) return c:next(function() end):await() end)
c = flow.spawn(function() flow.sleep(0) a:wait() error("not here: " .. tostring(a.error), 0) end)
check.equal(c:wait(), true)
check.contains(c.error.message, "waits for itself")

local followed
followed = flow.with_delay(0):next(function() return followed end)
check.equal(followed:wait(), true)
check.equal(followed.error.kind, "stalled")
local x, y
x = flow.with_delay(0):next(function() return y end)
y = flow.with_delay(0):next(function() return x end)
check.equal(x:wait(), true)
check.equal(y:wait(), true)
check.equal(x.error.kind, "stalled")

local joined
local member = flow.with_delay(0):next(function() return joined end)
joined = flow.when_all_succeed { member }
check.equal(joined:wait(), true)
check.equal(joined.error.kind, "stalled")

-- While something else goes on, too.
local ticking = flow.with_delay(0.005)
local run
run = flow.op("SelfOp", function(ctx) ctx.run:await() end):start()
check.equal(run.error.message, "stalled: [SelfOp] never finished")
check.equal(ticking.state, "pending")
ticking:cancel()

-- A wait with a limit ends by itself.
local limited
limited = flow.spawn(function() flow.sleep(0) return limited:wait(0.001) end)
check.equal(limited:await(), false)
