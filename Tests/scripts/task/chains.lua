-- Chains and loops of a million continuations keep no settled tasks and don't grow the stack.
local flow, check = require "flow", require "check"
local many = os.getenv "FLOWLUA_SANITIZER" and 20000 or 1000000

-- A loop in which each continuation starts the next one.
local count = 0
local done = flow.context()
local function again()
  count = count + 1
  if count == many then return done:set_result(count) end
  flow.resolved():next(again)
end
local watched = setmetatable({}, { __mode = "k" })
local function watch(task) watched[task] = true return task end
watch(flow.resolved(1)):next(again)
check.equal(done.task:await(), many)
collectgarbage()
collectgarbage()
check.equal(next(watched), nil)

-- A chain that is built first.
local c = flow.context()
local tail = c.task
for _ = 1, many // 20 do tail = tail:next_on_success(function(n) return n + 1 end) end
c:set_result(0)
check.equal(tail:await(), many // 20)

-- One that is given up.
tail = flow.context().task
for _ = 1, many // 20 do tail = tail:next_on_success(function(n) return n + 1 end) end
tail = nil
collectgarbage()
collectgarbage()

-- A function that returns the task of the next step.
local function step(n)
  if n == 0 then return "end" end
  return flow.resolved(n - 1):next_on_success(step)
end
check.equal(flow.resolved(many // 50):next_on_success(step):await(), "end")

-- Awaiting in a loop.
flow.spawn(function()
  for i = 1, many // 20 do check.equal(flow.resolved(i):await(), i) end
end):await()
