-- What tasks take; arg[1] says of which, arg[2] how many:
--
--   settle   settling one that has a continuation, all made before. Prints ns.
--   chain    a chain of continuations, built, settled and awaited. Prints ms for all.
--   await    awaiting a settled one. Prints ns.
local flow = require "flow"
local n = tonumber(arg[2])
local measures = {}

function measures.settle()
  local contexts, sum = {}, 0
  local function add(value) sum = sum + value end
  for i = 1, n do
    contexts[i] = flow.context()
    contexts[i].task:next_on_success(add)
  end
  collectgarbage()
  local before = flow.now()
  for i = 1, n do contexts[i]:set_result(1) end
  local elapsed = flow.now() - before
  assert(sum == n)
  return elapsed / n * 1e9
end

function measures.chain()
  local function increment(value) return value + 1 end
  local before = flow.now()
  local context = flow.context()
  local task = context.task
  for _ = 1, n do task = task:next_on_success(increment) end
  context:set_result(0)
  local result = task:await()
  local elapsed = flow.now() - before
  assert(result == n)
  return elapsed * 1e3
end

function measures.await()
  local task, sum = flow.resolved(1), 0
  local before = flow.now()
  for _ = 1, n do sum = sum + task:await() end
  local elapsed = flow.now() - before
  assert(sum == n)
  return elapsed / n * 1e9
end

print(measures[arg[1]]())
