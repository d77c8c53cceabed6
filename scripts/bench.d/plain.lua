-- Plain Lua code, a small benchmark at a time: prints its microseconds of time and of CPU
-- time.
--
--   plain.lua NAME
local benchmarks = {
  calls = function()
    local function fibonacci(n)
      return n < 2 and n or fibonacci(n - 1) + fibonacci(n - 2)
    end
    fibonacci(29)
  end,
  loops = function()
    local sum = 0
    for i = 1, 1e7 do sum = sum + i % 7 end
  end,
  strings = function()
    local parts = {}
    for i = 1, 2e5 do parts[i] = ("%d:%s"):format(i, i) end
    table.concat(parts, ","):gsub("%d+", "")
  end,
  tables = function()
    local count = 0
    for _ = 1, 30 do
      local rows = {}
      for i = 1, 1e4 do rows[i] = { i, x = i } end
      count = count + #rows
    end
  end,
  closures = function()
    local sum = 0
    for i = 1, 1e6 do
      local function value() return i end
      sum = sum + value()
    end
  end,
  sort = function()
    local list, x = {}, 1
    for i = 1, 1e5 do
      x = x * 16807 % 2147483647
      list[i] = x
    end
    table.sort(list)
  end,
  -- A million resumes, and as many yields.
  switches = function()
    local co = coroutine.wrap(function()
      while true do coroutine.yield() end
    end)
    for _ = 1, 1e6 do co() end
  end,
}

local benchmark = benchmarks[arg[1]]
local stop = require "clock"()
benchmark()
print(stop(1e6))
