-- A task that waits for itself fails instead of hanging.
local flow, check = require "flow", require "check"
local self
self = flow.spawn(function() flow.sleep(0) return self:await() end)
check.equal(self:wait(), true)
check.equal(self.error.kind, "stalled")
check.contains(self.error.message, "stalled: [task at ", "cycles.lua:4] waits for itself")

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

-- Also while other work is in progress.
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

limited = flow.spawn(function() flow.sleep(0) return b:await() end)
b = flow.spawn(function() return limited:wait(0.001) end)
check.equal(limited:await(), false)

-- So does one for the first of several that can end.
local race, behind
race = flow.spawn(function()
  flow.sleep(0)
  return flow.when_any_finish({ behind, flow.with_delay(0.001, "limit") }):await()
end)
behind = flow.spawn(function() return race:await() end)
check.equal(behind:await(), "limit")
race = flow.spawn(function() flow.sleep(0) return flow.when_any_finish({ race }):await() end)
check.equal(race:wait(), true)
check.contains(race.error.message, "waits for itself")

-- Everything below fails although other work never ends.
local on = flow.spawn(function() while true do flow.sleep(0.01) end end)
local function fails(task)
  check.equal(task:wait(1), true)
  check.equal(task.error.kind, "stalled")
end

-- However many are in between, or wait as well.
local first, last
first = flow.spawn(function() flow.sleep(0) return last:await() end)
local chain = { first }
for i = 1, 1000 do chain[i + 1] = flow.spawn(function() return chain[i]:await() end) end
last = chain[#chain]
for _, each in ipairs(chain) do fails(each) end
first = flow.spawn(function() flow.sleep(0) return last:await() end)
local crowd = {}
for i = 1, 1000 do crowd[i] = flow.spawn(function() return first:await() end) end
last = crowd[567]
fails(first)
for _, each in ipairs(crowd) do fails(each) end

-- By runs, which are waited for when they have begun.
local starter
local AwaitOp = flow.op("AwaitOp", function() return starter:await() end)
for _, way in ipairs { "run", "start" } do
  starter = flow.spawn(function() flow.sleep(0) AwaitOp[way](AwaitOp):await() end)
  fails(starter)
end
starter = flow.spawn(function() flow.sleep(0) flow.new("f"):add(AwaitOp):run() end)
fails(starter)
local ReturnOp = flow.op("ReturnOp", function() return starter end)
starter = flow.spawn(function() flow.sleep(0) ReturnOp:run() end)
fails(starter)
starter = flow.spawn(function()
  flow.sleep(0)
  flow.machine { name = "m", start = "a", flow.step("a", { run = function() return starter end }) }:run()
end)
fails(starter)
on:cancel()
