-- The units of units.lua as other Lua code has them, without a log, errors and cancellation:
--
--   units_peer.lua KIND COUNT
--
-- Prints the same numbers.
local create, resume = coroutine.create, coroutine.resume
local kind, count = arg[1], tonumber(arg[2])
local kinds = {}

-- Small tables in a list, by method calls.
function kinds.add(n)
  local List = {}
  List.__index = List
  function List:add(op)
    self[#self + 1] = { op = op }
    return self
  end
  local function nothing() end
  return function()
    local list = setmetatable({}, List)
    for _ = 1, n do list:add(nothing) end
    list = nil -- luacheck: ignore 311
    collectgarbage()
  end
end

-- The least cost of a body that may wait: a coroutine made and resumed.
function kinds.op(n)
  local function nothing() end
  return function() for _ = 1, n do resume(create(nothing)) end end
end

-- A coroutine for each step, which adds to a field of a table.
function kinds.step(n)
  local data = { n = 0 }
  local function increment() data.n = data.n + 1 end
  return function()
    for _ = 1, n do resume(create(increment)) end
    assert(data.n == n)
  end
end

-- A coroutine and a table for each item.
function kinds.item(n)
  local items = {}
  for i = 1, n do items[i] = i end
  return function()
    local doubled = {}
    for i = 1, n do
      local bucket = { item = items[i] }
      resume(create(function() bucket.doubled = bucket.item * 2 end))
      doubled[i] = bucket.doubled
    end
    assert(#doubled == n)
  end
end

-- Each step is called in a coroutine of its own, and a table says which comes next.
function kinds.transition(n)
  local function increment(state) return state + 1 end
  local steps = {
    ping = { run = increment, next = "pong" }, pong = { run = increment, next = "ping" },
  }
  return function()
    local step, state = steps.ping, 1
    for _ = 1, n do
      local _, result = resume(create(step.run), state)
      state = result
      step = steps[step.next]
    end
    assert(state == n + 1)
  end
end

-- Tasks are tables, continuations closures.
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

function kinds.settle(n)
  local tasks, sum = {}, 0
  local function add(value) sum = sum + value end
  for i = 1, n do
    tasks[i] = {}
    next_on_success(tasks[i], add)
  end
  return function()
    for i = 1, n do settle(tasks[i], 1) end
    assert(sum == n)
  end
end

function kinds.continuation(n)
  local function increment(value) return value + 1 end
  return function()
    local first = {}
    local task = first
    for _ = 1, n do task = next_on_success(task, increment) end
    settle(first, 0)
    assert(task.result == n)
  end
end

-- A coroutine and a timer each.
function kinds.luv_sleeper(n)
  local uv = require "luv"
  local running, yield = coroutine.running, coroutine.yield
  local finished = 0
  local function sleep(milliseconds)
    local co, timer = running(), uv.new_timer()
    timer:start(milliseconds, 0, function()
      timer:close()
      assert(resume(co))
    end)
    yield()
  end
  local function sleepy()
    sleep(100)
    finished = finished + 1
  end
  return function()
    for _ = 1, n do assert(resume(create(sleepy))) end
    uv.run()
    assert(finished == n)
  end, 0.1
end

function kinds.cqueues_sleeper(n)
  local cqueues = require "cqueues"
  local finished = 0
  return function()
    local queue = cqueues.new()
    for _ = 1, n do
      queue:wrap(function()
        cqueues.sleep(0.1)
        finished = finished + 1
      end)
    end
    assert(queue:loop())
    assert(finished == n)
  end, 0.1
end

require "measured"(assert(kinds[kind], "no such kind"), count, 1)
