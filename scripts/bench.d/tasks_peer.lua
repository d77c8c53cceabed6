-- `settle` and `chain` of tasks.lua with closures alone: no errors, no waits, no states.
local n = tonumber(arg[2])
local measures = {}

local function settle(task, value)
  task.result = value
  local continue = task.continue
  if continue then return continue(value) end
end

local function next_on_success(task, fn)
  local new = {}
  task.continue = function(value) return settle(new, fn(value)) end
  return new
end

function measures.settle()
  local tasks, sum = {}, 0
  local function add(value) sum = sum + value end
  for i = 1, n do
    tasks[i] = {}
    next_on_success(tasks[i], add)
  end
  collectgarbage()
  local before = os.clock()
  for i = 1, n do settle(tasks[i], 1) end
  local elapsed = os.clock() - before
  assert(sum == n)
  return elapsed / n * 1e9
end

function measures.chain()
  local function increment(value) return value + 1 end
  local before = os.clock()
  local first = {}
  local task = first
  for _ = 1, n do task = next_on_success(task, increment) end
  settle(first, 0)
  local elapsed = os.clock() - before
  assert(task.result == n)
  return elapsed * 1e3
end

print(measures[arg[1]]())
